"""The answers people read: totals of hours, one hour's split, and how far the job has come."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from analytics_spark.checkpoint import Offsets, Ranges

Connection = asyncpg.Connection | PoolConnectionProxy
Split = Literal["origin", "item", "address", "gender", "type"]

# A purchase is local because address and origin are equal, so that one column answers for both.
COLUMNS: dict[Split, str] = {
    "origin": "address",
    "item": "item_id",
    "address": "address",
    "gender": "gender",
    "type": "item_type",
}

# Distinct buyers are counted from the users' own rows: sums of distinct counts would be wrong.
TOTALS = """
    count(DISTINCT user_id) AS local_buyers,
    coalesce(sum(purchases), 0)::bigint AS purchases,
    coalesce(sum(quantity), 0)::bigint AS quantity,
    coalesce(sum(cents), 0)::bigint AS cents
"""

LIST_HOURS = f"""
    SELECT hour, {TOTALS}
    FROM cells
    WHERE ($1::timestamptz IS NULL OR hour >= $1)
      AND ($2::timestamptz IS NULL OR hour < $2)
      AND ($3::timestamptz IS NULL OR hour > $3)
    GROUP BY hour
    ORDER BY hour
    LIMIT $4
"""

ONE_HOUR = f"""
    SELECT {TOTALS}
    FROM cells
    WHERE hour = $1
"""

WATERMARK = "SELECT max(watermark) FROM epochs"

LATEST_EPOCH = """
    SELECT epochs.batch_id, epochs.watermark, epochs.trace_id, epochs.committed_at,
        epochs.counted, epochs.late, epochs.duplicates, epochs.bad,
        batches.counted AS batch_counted, batches.offsets
    FROM epochs
    JOIN batches USING (query_id, batch_id)
    ORDER BY epochs.committed_at DESC
    LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    local_buyers: int
    purchases: int
    quantity: int
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The last committed batch, and the totals since the first one."""

    batch_id: int
    watermark: datetime | None
    trace_id: str
    committed_at: datetime
    orders: int
    offsets: Ranges
    counted: int
    late: int
    duplicates: int
    bad: int

    @property
    def end_offsets(self) -> Offsets:
        return {
            topic: {partition: end for partition, (_, end) in partitions.items()}
            for topic, partitions in self.offsets.items()
        }


@asynccontextmanager
async def snapshot(pool: asyncpg.Pool) -> AsyncIterator[Connection]:
    """A connection on which all reads see the same batch."""
    async with (
        pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        yield connection


async def list_hours(
    connection: Connection,
    *,
    since: datetime | None,
    until: datetime | None,
    after: datetime | None,
    limit: int,
) -> Sequence[tuple[datetime, Totals]]:
    """Hours in [since, until) and behind `after` in which somebody bought from home."""
    rows = await connection.fetch(LIST_HOURS, since, until, after, limit)
    return [(row["hour"], totals_of(row)) for row in rows]


async def get_hour(connection: Connection, hour: datetime) -> Totals:
    """An hour in which nobody bought from home has zeros."""
    row = await connection.fetchrow(ONE_HOUR, hour)
    assert row is not None  # an aggregate without GROUP BY always has a row
    return totals_of(row)


async def split_hour(
    connection: Connection, hour: datetime, by: Split
) -> Sequence[tuple[str, Totals]]:
    """The hour's totals for each value of `by` that has some."""
    rows = await connection.fetch(
        f"""
        SELECT {COLUMNS[by]} AS value, {TOTALS}
        FROM cells
        WHERE hour = $1
        GROUP BY {COLUMNS[by]}
        ORDER BY {COLUMNS[by]}
        """,
        hour,
    )
    return [(row["value"], totals_of(row)) for row in rows]


async def watermark(connection: Connection) -> datetime | None:
    """What ends at or before this moment changes no more; None before the second batch."""
    result: datetime | None = await connection.fetchval(WATERMARK)
    return result


async def latest_epoch(pool: asyncpg.Pool) -> Epoch | None:
    row = await pool.fetchrow(LATEST_EPOCH)
    if row is None:
        return None
    return Epoch(
        batch_id=row["batch_id"],
        watermark=row["watermark"],
        trace_id=row["trace_id"],
        committed_at=row["committed_at"],
        orders=row["batch_counted"],
        offsets=json.loads(row["offsets"]),
        counted=row["counted"],
        late=row["late"],
        duplicates=row["duplicates"],
        bad=row["bad"],
    )


def totals_of(row: asyncpg.Record) -> Totals:
    return Totals(
        local_buyers=row["local_buyers"],
        purchases=row["purchases"],
        quantity=row["quantity"],
        cents=row["cents"],
    )
