"""The batch that read a record is found without reading all batches, whatever is asked for."""

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from analytics_spark.serving.hour_queries import READING, find_reading
from shared.runtime import postgres

QUERY_ID = UUID(int=1)
BATCHES = 2_000
FIRST_BATCH = 7
"""Older ones were deleted."""
BEGIN = datetime(2016, 11, 11, tzinfo=UTC)
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
IMPOSSIBLE = 2**62

ROWS_READ_MAX = 100

# Batch by batch, half of them without new records of the partition; every tenth batch is missing.
FILL = """
    INSERT INTO batches (query_id, batch_id, offsets, watermark, trace_id, committed_at,
                         counted, late, duplicates, cancellations, ignored, bad)
    SELECT $1, number, jsonb_build_object('orders.v1', jsonb_build_object('0', jsonb_build_array(
               0, number / 2 * 3))),
           NULL, 'trace', $2::timestamptz + make_interval(secs => number), 0, 0, 0, 0, 0, 0
    FROM generate_series($3::bigint, $4::bigint) AS number
    WHERE number % 10 <> 0
"""

ONE_BY_ONE = """
    SELECT batch_id
    FROM batches
    WHERE committed_at >= $2 AND (offsets->'orders.v1'->'0'->>1)::bigint > $1
    ORDER BY committed_at
    LIMIT 1
"""


@pytest.fixture
async def pool(tables: str) -> AsyncIterator[asyncpg.Pool]:
    async with postgres.open_pool(tables, name="test", connections_max=1) as pool:
        yield pool


async def store_batches(pool: asyncpg.Pool, last: int) -> None:
    await pool.execute(FILL, QUERY_ID, BEGIN, FIRST_BATCH, last)


def scans_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "Relation Name" in plan:
        yield plan
    for below in plan.get("Plans", ()):
        yield from scans_of(below)


async def count_rows_read(
    pool: asyncpg.Pool, statement: str, topic: str, partition: str, offset: int
) -> float:
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"
    text = await pool.fetchval(explain, topic, partition, offset, LONG_AGO)
    rows: float = sum(
        (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"]
        for scan in scans_of(json.loads(text)[0]["Plan"])
    )
    return rows


async def test_it_is_the_first_batch_since_then_that_ends_after_the_record(
    pool: asyncpg.Pool,
) -> None:
    await store_batches(pool, 40)

    for seconds in (0, 13, 29, 40, 41):
        since = BEGIN + timedelta(seconds=seconds)
        for offset in range(70):
            reading = await find_reading(pool, "orders.v1", 0, offset, recorded_at=since)
            expected = await pool.fetchval(ONE_BY_ONE, offset, since)
            assert (reading.batch_id if reading else None) == expected


async def test_without_batches_nothing_was_read(pool: asyncpg.Pool) -> None:
    assert await find_reading(pool, "orders.v1", 0, 0, recorded_at=LONG_AGO) is None


@pytest.mark.parametrize(
    ("topic", "partition", "offset"),
    [("orders.v1", "0", IMPOSSIBLE), ("orders.v1", "77", 0), ("nothing", "0", 0)],
)
async def test_a_record_that_does_not_exist_costs_no_more_than_another(
    pool: asyncpg.Pool, topic: str, partition: str, offset: int
) -> None:
    await store_batches(pool, BATCHES)

    assert await find_reading(pool, topic, int(partition), offset, recorded_at=LONG_AGO) is None
    assert await count_rows_read(pool, READING, topic, partition, offset) <= ROWS_READ_MAX
