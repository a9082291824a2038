"""Reading the outbox: what became visible since the last look, however long it took to commit.

The cursor is not a position but a *snapshot*: everything visible now that was not visible then is
new (the algorithm of PgQ). A sequence alone loses what commits late. The oldest running transaction
as a horizon loses nothing, but lets version 6 of a stream leave before version 5 when the writer of
6 took its transaction id first, and waits for every slow writer in the cluster.

Why it keeps each stream's order: who appends version 6 has read version 5, so 5 was committed
before the row of 6 existed. Either 5 becomes visible in an earlier window, or both are in one
window and 5 has the smaller position. Rolled back rows never become visible.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import asyncpg


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Which transactions a reader sees: all below xmax but those in xip (in progress then)."""

    xmax: str = "0"
    xip: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Snapshot":
        """From PostgreSQL's text form `xmin:xmax:xip_list`."""
        _, xmax, xip = text.split(":")
        return cls(xmax, tuple(xip.split(",")) if xip else ())


@dataclass(frozen=True, slots=True)
class Progress:
    """All rows visible in `published` are acknowledged, and, while a large window is open,
    those of the window up to `floor` too; `target` is the snapshot that closes the window."""

    published: Snapshot = field(default_factory=Snapshot)
    target: str | None = None
    floor: int = 0


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A record as it goes to Kafka."""

    position: int
    topic: str
    partition: int
    key: bytes
    value: bytes
    headers: dict[str, str]
    recorded_at: datetime


# Snapshot and rows come from one statement, so they belong together. Both branches are ranges of
# the index (transaction_id, position); the LIMITs keep every plan on it and bound the answer.
POLL = """
    WITH now AS MATERIALIZED (SELECT pg_current_snapshot()::text AS snapshot)
    SELECT now.snapshot, new.*
    FROM now LEFT JOIN LATERAL (
        (SELECT position, topic, partition, key, value, headers, recorded_at
         FROM outbox
         WHERE transaction_id >= $1::text::xid8
         ORDER BY transaction_id, position
         LIMIT $3)
        UNION ALL
        (SELECT position, topic, partition, key, value, headers, recorded_at
         FROM outbox
         WHERE transaction_id = ANY($2::text[]::xid8[]) AND transaction_id < $1::text::xid8
         ORDER BY transaction_id, position
         LIMIT $3)
    ) AS new ON true
"""

WINDOW_FLOOR = """
    SELECT min(position) - 1
    FROM outbox
    WHERE transaction_id >= $1::text::xid8 OR transaction_id = ANY($2::text[]::xid8[])
"""

# A window too large for one answer is paged by position inside its two snapshots. Pages by
# (transaction_id, position) could put version 6 on an earlier page than version 5.
PAGE = """
    SELECT position, topic, partition, key, value, headers, recorded_at
    FROM outbox
    WHERE position > $4
      AND (transaction_id >= $1::text::xid8 OR transaction_id = ANY($2::text[]::xid8[]))
      AND pg_visible_in_snapshot(transaction_id, $3::text::pg_snapshot)
    ORDER BY position
    LIMIT $5
"""


async def poll(
    connection: asyncpg.Connection, published: Snapshot, rows_max: int
) -> tuple[str, list[OutboxRow] | None]:
    """The snapshot of this moment as text, and the rows new since `published` by position.

    None in place of the rows means: too many for one answer, page through the window instead.
    """
    answer = await connection.fetch(POLL, published.xmax, list(published.xip), rows_max)
    snapshot: str = answer[0]["snapshot"]
    if len(answer) >= rows_max:
        return snapshot, None
    rows = [row_of(record) for record in answer if record["position"] is not None]
    return snapshot, sorted(rows, key=lambda row: row.position)


async def window_floor(connection: asyncpg.Connection, published: Snapshot) -> int:
    """The position just below the first row that `published` does not show; 0 if there is none."""
    floor = await connection.fetchval(WINDOW_FLOOR, published.xmax, list(published.xip))
    return floor or 0


async def page(
    connection: asyncpg.Connection, progress: Progress, rows_max: int
) -> Sequence[OutboxRow]:
    """The next rows of the open window, by position; none when the window is done."""
    records = await connection.fetch(
        PAGE,
        progress.published.xmax,
        list(progress.published.xip),
        progress.target,
        progress.floor,
        rows_max,
    )
    return [row_of(record) for record in records]


def row_of(record: asyncpg.Record) -> OutboxRow:
    return OutboxRow(
        position=record["position"],
        topic=record["topic"],
        partition=record["partition"],
        key=record["key"],
        value=record["value"],
        headers=json.loads(record["headers"]),
        recorded_at=record["recorded_at"],
    )
