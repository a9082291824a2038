"""The hours that changed since a position: written by batches, or final since then."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from shared.runtime.postgres import Connection

HOURS_PER_CHANGE_MAX = 1000
"""A client that missed more than that should read all hours again."""
POSITION_PATTERN = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})")

NEWEST = "SELECT query_id, batch_id, watermark FROM epochs ORDER BY committed_at DESC LIMIT 1"

# The oldest batches are deleted first: while the position's own batch exists, so do all later ones.
IS_KEPT = "SELECT EXISTS (SELECT FROM batches WHERE query_id = $1 AND batch_id = $2)"

IS_KNOWN = """
    SELECT NOT EXISTS (
        SELECT FROM batches
        WHERE query_id = $1 AND batch_id > $2 AND hours IS NULL
    )
"""

# The watermark only grows, and a batch without one has not moved it.
WATERMARK_AT = """
    SELECT watermark
    FROM batches
    WHERE query_id = $1 AND batch_id <= $2 AND watermark IS NOT NULL
    ORDER BY batch_id DESC
    LIMIT 1
"""

# An hour is final when its end is at or before the watermark.
CHANGED = """
    SELECT DISTINCT unnest(hours) AS hour
    FROM batches
    WHERE query_id = $1 AND batch_id > $2
    UNION
    SELECT DISTINCT hour
    FROM cells
    WHERE hour > coalesce($3::timestamptz, '-infinity') - interval '1 hour'
      AND hour <= $4::timestamptz - interval '1 hour'
    ORDER BY hour
    LIMIT $5
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A batch of a query; those of one query are ordered."""

    query_id: UUID
    batch_id: int

    def __str__(self) -> str:
        return f"{self.query_id}.{self.batch_id}"

    def reaches(self, other: "Position") -> bool:
        """Whether this position includes the other's batch."""
        return self.query_id == other.query_id and self.batch_id >= other.batch_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The changes up to `position`; `hours` is None when they are no longer known."""

    position: Position | None
    watermark: datetime | None
    hours: Sequence[datetime] | None


def parse_position(text: str) -> Position | None:
    """The position in a Last-Event-ID; None when the text is not a position."""
    found = POSITION_PATTERN.fullmatch(text)
    return Position(query_id=UUID(found[1]), batch_id=int(found[2])) if found else None


async def find_newest(pool: asyncpg.Pool) -> Position | None:
    """The last batch."""
    row = await pool.fetchrow(NEWEST)
    return Position(query_id=row["query_id"], batch_id=row["batch_id"]) if row else None


async def read_changes(connection: Connection, position: Position | None) -> Change:
    """The changes after the position, in the snapshot of the connection.

    `hours` is None without a position, or with one from before the tables were emptied, of a batch
    that was deleted, or with more than HOURS_PER_CHANGE_MAX changed hours.
    """
    row = await connection.fetchrow(NEWEST)
    if row is None:
        return Change(position=None, watermark=None, hours=None)
    last = Position(query_id=row["query_id"], batch_id=row["batch_id"])
    return Change(
        position=last,
        watermark=row["watermark"],
        hours=await hours_between(connection, position, last, row["watermark"]),
    )


async def hours_between(
    connection: Connection, position: Position | None, last: Position, watermark: datetime | None
) -> Sequence[datetime] | None:
    if position is None or not last.reaches(position):
        return None
    if last == position:
        return []
    batch = (position.query_id, position.batch_id)
    if not await connection.fetchval(IS_KEPT, *batch):
        return None
    if not await connection.fetchval(IS_KNOWN, *batch):
        return None
    before = await connection.fetchval(WATERMARK_AT, *batch)
    rows = await connection.fetch(CHANGED, *batch, before, watermark, HOURS_PER_CHANGE_MAX + 1)
    return [row["hour"] for row in rows] if len(rows) <= HOURS_PER_CHANGE_MAX else None
