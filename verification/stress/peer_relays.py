"""Relays of simpler, common designs, each with a flaw that the campaign shows.

Both store a cursor into an order of the rows, and publish what comes after it. They have no lease
and one process each, and store their cursor after every batch.
"""

import asyncio

import asyncpg

from shared.messaging import kafka
from shared.outbox.outbox import COLUMNS, OutboxRow
from shared.outbox.relay import CONNECTION_SETTINGS, ROWS_MAX
from shared.runtime import processes
from shared.runtime.settings import Settings

IDLE_SECONDS = 0.002

POSITION = f"""
    SELECT {COLUMNS}, transaction_id::text AS transaction_id
    FROM outbox
    WHERE position > $2 AND $1::text IS NOT NULL
    ORDER BY position
    LIMIT $3
"""
"""Loses late commits: their position is already below the cursor."""

HORIZON = f"""
    SELECT {COLUMNS}, transaction_id::text AS transaction_id
    FROM outbox
    WHERE (transaction_id, position) > ($1::text::xid8, $2)
      AND transaction_id < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY outbox.transaction_id, position
    LIMIT $3
"""
"""Loses nothing, but orders rows by transaction id, whatever the streams' versions; and it waits
for the oldest open transaction of the whole server."""

PEERS = {"position": POSITION, "horizon": HORIZON}

CREATE_POINT = """
    CREATE TABLE IF NOT EXISTS peer_point AS SELECT '0' AS transaction_id, 0::bigint AS position
"""
READ_POINT = "SELECT transaction_id, position FROM peer_point"
STORE_POINT = "UPDATE peer_point SET transaction_id = $1, position = $2"


async def run_peer(rows_behind: str, name: str, settings: Settings) -> None:
    """Publish until SIGTERM or SIGINT, then publish the rest."""
    stopping = processes.create_stop_event()
    connection = await asyncpg.connect(
        settings.database_dsn,
        server_settings=CONNECTION_SETTINGS | {"application_name": name},
    )
    await connection.execute(CREATE_POINT)
    client = kafka.create_producer(settings.brokers, name)
    await client.start()
    [point] = await connection.fetch(READ_POINT)
    while True:
        asked_to_stop = stopping.is_set()
        rows = await connection.fetch(rows_behind, *point, ROWS_MAX, record_class=OutboxRow)
        if rows:
            await kafka.publish(client, [row.record for row in rows])
            await connection.execute(STORE_POINT, rows[-1]["transaction_id"], rows[-1].position)
            [point] = await connection.fetch(READ_POINT)
        elif asked_to_stop:
            break
        else:
            await asyncio.sleep(IDLE_SECONDS)
    await kafka.close(client)
    await connection.close()
