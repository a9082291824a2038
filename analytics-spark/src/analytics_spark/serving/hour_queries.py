"""Queries over the cells: totals of hours, the split of one hour, and how far the job is."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import asyncpg

from analytics_spark.job.checkpoint import Offsets, Ranges
from shared.runtime.postgres import Connection

Split = Literal["origin", "item", "address", "gender", "type"]
Purchases = Literal["local", "all"]
"""Which purchases the parts of a split are of."""

HOUR = timedelta(hours=1)

# The address of a local purchase equals the origin, so one column serves both splits.
COLUMNS: dict[Split, str] = {
    "origin": "address",
    "item": "item_id",
    "address": "address",
    "gender": "gender",
    "type": "item_type",
}

OF_SALES: dict[Split, str] = {"origin": "origin", "item": "item_id"}
"""What cells of purchases that are not local do not have, by its column in sales."""

LOCAL = "user_id <> ''"
"""Cells of purchases that are not local have no user."""

# Distinct buyers are counted from the users' own rows: sums of distinct counts would be wrong.
TOTALS = f"""
    count(DISTINCT user_id) FILTER (WHERE {LOCAL}) AS local_buyers,
    coalesce(sum(purchases) FILTER (WHERE {LOCAL}), 0)::bigint AS purchases,
    coalesce(sum(quantity) FILTER (WHERE {LOCAL}), 0)::bigint AS quantity,
    coalesce(sum(cents) FILTER (WHERE {LOCAL}), 0)::bigint AS cents
"""

ALL = """
    coalesce(sum(purchases), 0)::bigint AS all_purchases,
    coalesce(sum(quantity), 0)::bigint AS all_quantity,
    coalesce(sum(cents), 0)::bigint AS all_cents
"""

LIST_HOURS = f"""
    SELECT hour, {TOTALS}, {ALL}
    FROM cells
    WHERE hour >= coalesce($1::timestamptz, '-infinity')
      AND hour < coalesce($2::timestamptz, 'infinity')
      AND hour > coalesce($3::timestamptz, '-infinity')
    GROUP BY hour
    ORDER BY hour
    LIMIT $4
"""  # noqa: S608

SOME_HOURS = f"""
    SELECT hour, {TOTALS}, {ALL}
    FROM cells
    WHERE hour = ANY($1)
    GROUP BY hour
"""  # noqa: S608

ONE_HOUR = f"""
    SELECT {TOTALS}, {ALL}
    FROM cells
    WHERE hour = $1
"""  # noqa: S608

SUMS = "sum(purchases), sum(quantity), sum(cents)"
HAS_ALL_SALES = f"""
    SELECT (SELECT row({SUMS}) FROM cells WHERE hour = $1)
        IS NOT DISTINCT FROM (SELECT row({SUMS}) FROM sales WHERE hour = $1)
"""  # noqa: S608

WATERMARK = "SELECT max(watermark) FROM epochs"

LATEST_EPOCH = """
    SELECT epochs.batch_id, epochs.watermark, epochs.trace_id, epochs.committed_at,
        epochs.counted, epochs.late, epochs.duplicates, epochs.bad,
        batches.counted AS batch_counted, batches.offsets, batches.milliseconds
    FROM epochs
    JOIN batches USING (query_id, batch_id)
    ORDER BY epochs.committed_at DESC
    LIMIT 1
"""


LATEST_RECONCILIATION = """
    SELECT ended_at, since, until, purchases, undecided, differences, hours
    FROM reconciliations
    ORDER BY id DESC
    LIMIT 1
"""

# A batch commits after its records were recorded, and its end offset is after the records that it
# read: the first batch that ends after the record has read it. The end offsets of a query never
# decrease, so that batch is found by bisection: 17 rows of 100,000 are read, whatever is asked for.
READING = """
    WITH RECURSIVE search (query_id, low, high) AS (
        (
            SELECT query_id, batch_id,
                (SELECT max(batch_id) FROM batches WHERE query_id = first.query_id)
            FROM batches AS first
            WHERE committed_at >= $4
            ORDER BY committed_at
            LIMIT 1
        )
        UNION ALL
        SELECT query_id,
            CASE WHEN has_read THEN low ELSE middle + 1 END,
            CASE WHEN has_read THEN middle ELSE high END
        FROM search
        CROSS JOIN LATERAL (SELECT (low + high) / 2 AS middle) AS halved
        CROSS JOIN LATERAL (
            SELECT coalesce((offsets->$1->$2->>1)::bigint > $3, false) AS has_read
            FROM batches
            WHERE batches.query_id = search.query_id AND batch_id <= middle
            ORDER BY batch_id DESC
            LIMIT 1
        ) AS probed
        WHERE low < high
    )
    SELECT batch_id, committed_at, trace_id, watermark
    FROM search
    JOIN batches USING (query_id)
    WHERE low = high AND batch_id = low AND (offsets->$1->$2->>1)::bigint > $3
"""

CELLS_OF_USER = """
    SELECT item_id, address, purchases, quantity, cents
    FROM cells
    WHERE hour = $1 AND user_id = $2
    ORDER BY item_id, address
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The batch that read a record; an order at or before its watermark was too late to count."""

    batch_id: int
    committed_at: datetime
    trace_id: str
    watermark: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCell:
    """The local purchases of one item by one user in one hour."""

    item_id: str
    address: str
    purchases: int
    quantity: int
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Totals of local purchases: the item comes from the place where its buyer lives."""

    local_buyers: int
    purchases: int
    quantity: int
    cents: int


NOTHING = Totals(local_buyers=0, purchases=0, quantity=0, cents=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HourTotals:
    """Totals of an hour: of local purchases, and of all purchases."""

    local: Totals
    all_purchases: int
    all_quantity: int
    all_cents: int


NOTHING_AT_ALL = HourTotals(local=NOTHING, all_purchases=0, all_quantity=0, all_cents=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The last committed batch, and the totals since the first one."""

    batch_id: int
    watermark: datetime | None
    trace_id: str
    committed_at: datetime
    milliseconds: int | None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """The last comparison of the final hours in [since, until) with the event stores."""

    ended_at: datetime
    since: datetime | None
    until: datetime | None
    purchases: int
    undecided: int
    differences: int
    hours: Sequence[datetime]


def is_final(hour: datetime, watermark: datetime | None) -> bool:
    """Whether the hour no longer changes: the watermark has passed its end."""
    return watermark is not None and hour + HOUR <= watermark


def get_lag(ends: Offsets | None, epoch: Epoch | None) -> Offsets | None:
    """Records after the last batch, by topic and partition; None when the ends are unknown."""
    if ends is None:
        return None
    done = epoch.end_offsets if epoch else {}
    return {
        topic: {
            partition: max(end - done.get(topic, {}).get(partition, 0), 0)
            for partition, end in partitions.items()
        }
        for topic, partitions in ends.items()
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
) -> Sequence[tuple[datetime, HourTotals]]:
    """Hours in [since, until) and later than `after` with purchases, at most `limit`."""
    rows = await connection.fetch(LIST_HOURS, since, until, after, limit)
    return [(row["hour"], to_hour_totals(row)) for row in rows]


async def get_hours(
    connection: Connection, hours: Sequence[datetime]
) -> Sequence[tuple[datetime, HourTotals]]:
    """Each of these hours; one without purchases has zeros."""
    rows = await connection.fetch(SOME_HOURS, hours)
    found = {row["hour"]: to_hour_totals(row) for row in rows}
    return [(hour, found.get(hour, NOTHING_AT_ALL)) for hour in hours]


async def get_hour(connection: Connection, hour: datetime) -> HourTotals:
    """The totals of an hour; one without purchases has zeros."""
    row = await connection.fetchrow(ONE_HOUR, hour)
    assert row is not None  # an aggregate without GROUP BY always has a row
    return to_hour_totals(row)


async def split_hour(
    connection: Connection, hour: datetime, by: Split
) -> Sequence[tuple[str, Totals]]:
    """The hour's local totals for each value of `by` with purchases."""
    rows = await connection.fetch(
        f"""
        SELECT {COLUMNS[by]} AS value, {TOTALS}
        FROM cells
        WHERE hour = $1 AND {LOCAL}
        GROUP BY {COLUMNS[by]}
        ORDER BY {COLUMNS[by]}
        """,  # noqa: S608
        hour,
    )
    return [(row["value"], to_totals(row)) for row in rows]


class SalesUnknown(Exception):
    """The hour was counted by a release that did not count sales: see migration 0006."""


async def split_hour_of_all(
    connection: Connection, hour: datetime, by: Split
) -> Sequence[tuple[str, HourTotals]]:
    """The hour's totals, local and of all purchases, for each value of `by` with purchases.

    Raises:
        SalesUnknown: `by` needs sales, and the hour has not all of them.
    """
    if by not in OF_SALES:
        rows = await connection.fetch(
            f"""
            SELECT {COLUMNS[by]} AS value, {TOTALS}, {ALL}
            FROM cells
            WHERE hour = $1
            GROUP BY {COLUMNS[by]}
            ORDER BY {COLUMNS[by]}
            """,  # noqa: S608
            hour,
        )
        return [(row["value"], to_hour_totals(row)) for row in rows]
    if not await connection.fetchval(HAS_ALL_SALES, hour):
        raise SalesUnknown(SalesUnknown.__doc__)
    local = dict(await split_hour(connection, hour, by))
    rows = await connection.fetch(
        f"""
        SELECT {OF_SALES[by]} AS value, {ALL}
        FROM sales
        WHERE hour = $1
        GROUP BY {OF_SALES[by]}
        ORDER BY {OF_SALES[by]}
        """,  # noqa: S608
        hour,
    )
    return [
        (
            row["value"],
            HourTotals(
                local=local.get(row["value"], NOTHING),
                all_purchases=row["all_purchases"],
                all_quantity=row["all_quantity"],
                all_cents=row["all_cents"],
            ),
        )
        for row in rows
    ]


async def find_reading(
    pool: asyncpg.Pool, topic: str, partition: int, offset: int, *, recorded_at: datetime
) -> Reading | None:
    """The batch that read a record; None when it was not read yet, or its batch was deleted."""
    row = await pool.fetchrow(READING, topic, str(partition), offset, recorded_at)
    return Reading(**row) if row else None


async def get_user_cells(pool: asyncpg.Pool, hour: datetime, user_id: str) -> Sequence[UserCell]:
    """The local purchases of a user in an hour."""
    return [UserCell(**row) for row in await pool.fetch(CELLS_OF_USER, hour, user_id)]


async def get_watermark(connection: Connection) -> datetime | None:
    """Hours that end at or before it no longer change; None before the second batch."""
    result: datetime | None = await connection.fetchval(WATERMARK)
    return result


async def get_latest_epoch(source: asyncpg.Pool | Connection) -> Epoch | None:
    row = await source.fetchrow(LATEST_EPOCH)
    if row is None:
        return None
    return Epoch(
        batch_id=row["batch_id"],
        watermark=row["watermark"],
        trace_id=row["trace_id"],
        committed_at=row["committed_at"],
        milliseconds=row["milliseconds"],
        orders=row["batch_counted"],
        offsets=json.loads(row["offsets"]),
        counted=row["counted"],
        late=row["late"],
        duplicates=row["duplicates"],
        bad=row["bad"],
    )


async def get_latest_reconciliation(pool: asyncpg.Pool) -> Reconciled | None:
    row = await pool.fetchrow(LATEST_RECONCILIATION)
    return Reconciled(**row) if row else None


def to_totals(row: asyncpg.Record) -> Totals:
    return Totals(
        local_buyers=row["local_buyers"],
        purchases=row["purchases"],
        quantity=row["quantity"],
        cents=row["cents"],
    )


def to_hour_totals(row: asyncpg.Record) -> HourTotals:
    return HourTotals(
        local=to_totals(row),
        all_purchases=row["all_purchases"],
        all_quantity=row["all_quantity"],
        all_cents=row["all_cents"],
    )
