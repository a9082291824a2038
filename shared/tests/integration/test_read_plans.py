"""A batch reads the events of its streams by index, however many others there are."""

from uuid import UUID

import asyncpg
import pytest

from shared.eventsourcing import event_store, locked_streams

STREAMS = 5_000
EVENTS_PER_STREAM = 40
BATCH = 50

FILL = f"""
    INSERT INTO streams (stream_id, category, version, published_version)
    SELECT gen_random_uuid(), 'counter', {EVENTS_PER_STREAM}, {EVENTS_PER_STREAM}
    FROM generate_series(1, {STREAMS});
    INSERT INTO events (stream_id, version, event_id, type, schema_version, data, metadata,
                        recorded_at)
    SELECT stream_id, version, gen_random_uuid(), 'counted', 1, '{{}}', '{{}}', now()
    FROM (SELECT stream_id FROM streams) AS known
    CROSS JOIN generate_series(1, {EVENTS_PER_STREAM}) AS version
"""


@pytest.mark.parametrize("plan_cache_mode", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("is_analysed", [False, True])
async def test_a_batch_reads_by_index(
    connection: asyncpg.Connection, is_analysed: bool, plan_cache_mode: str
) -> None:
    await connection.execute(f"SET plan_cache_mode = {plan_cache_mode}")
    await connection.execute(FILL)
    if is_analysed:
        await connection.execute("ANALYZE")
    rows = await connection.fetch("SELECT stream_id FROM streams LIMIT $1", BATCH)
    streams: list[UUID] = [row["stream_id"] for row in rows]

    newest = await plan(connection, event_store.READ_FROM, streams, [EVENTS_PER_STREAM] * BATCH)
    locked = await plan(connection, locked_streams.LOCK, streams, "counter")

    assert "Seq Scan" not in newest
    assert "Seq Scan" not in locked


async def plan(connection: asyncpg.Connection, statement: str, *values: object) -> str:
    return "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *values))
