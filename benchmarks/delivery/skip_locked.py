"""A peer: the usual relay, with SKIP LOCKED, an acknowledgement per record, and DELETE.

Its rows are in order within one batch; several of these would not keep the order of a key.
"""

import asyncio

import asyncpg
import uvloop
from aiokafka import AIOKafkaProducer

from shared.messaging import kafka, wire
from shared.runtime.settings import Settings

ROWS_MAX = 2_000
IDLE_SECONDS = 0.1

CLAIM = """
    SELECT position, topic, partition, key, value, headers
    FROM outbox
    ORDER BY position
    LIMIT $1
    FOR UPDATE SKIP LOCKED
"""
DELETE = "DELETE FROM outbox WHERE position = ANY($1)"


async def relay(settings: Settings) -> None:
    connection = await asyncpg.connect(settings.database_dsn)
    client = kafka.create_producer(settings.brokers, "skip-locked")
    await client.start()
    while True:
        if not await publish_some(connection, client):
            await asyncio.sleep(IDLE_SECONDS)


async def publish_some(connection: asyncpg.Connection, client: AIOKafkaProducer) -> int:
    """Claim, send and delete some rows; return their number."""
    async with connection.transaction():
        rows = await connection.fetch(CLAIM, ROWS_MAX)
        for row in rows:
            await client.send_and_wait(
                row["topic"],
                partition=row["partition"],
                key=row["key"],
                value=row["value"],
                headers=wire.unpack(row["headers"]),
            )
        await connection.execute(DELETE, [row["position"] for row in rows])
    return len(rows)


if __name__ == "__main__":
    uvloop.run(relay(Settings()))
