"""Reading the outbox: what became visible since the last poll, however long it took to commit.

The cursor is not a position but a *snapshot*: everything visible now that was not visible then is
new (the algorithm of PgQ). A sequence alone loses what commits late. The oldest running transaction
as a horizon loses nothing, but lets version 6 of a stream leave before version 5 when the writer of
6 took its transaction id first, and waits for every slow writer in the cluster.

Why it keeps each stream's order: a writer that appends version 6 has read version 5, so 5 was
committed before the row of 6 existed. Either 5 becomes visible in an earlier window, or both are in
one window and 5 has the smaller position. Rolled back rows never become visible.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter

import asyncpg

from shared.messaging.wire import OutgoingRecord, Target
from shared.runtime import postgres

HOUR = timedelta(hours=1)
HOURS_AHEAD = 4
"""Partitions that stand ready, the present hour's among them."""
HOLD_SECONDS_MAX = 0.25
"""How long a change of partitions may keep writers and the relay waiting."""
DELETE_SECONDS_MAX = 5.0
DELETED_ROWS_MAX = 100_000
"""By one statement, of the partition that cannot be dropped."""
EMPTYING_SECONDS_MAX = 30.0
"""After which no further statement of a round begins."""
KEPT = timedelta(minutes=10)
"""How long an ended partition stays at least, for writers whose clock is behind."""


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

    @property
    def text(self) -> str:
        """PostgreSQL's text form."""
        return f"{min((*self.xip, self.xmax), key=int)}:{self.xmax}:{','.join(self.xip)}"


@dataclass(frozen=True, slots=True)
class RelayCheckpoint:
    """All rows visible in `published` are acknowledged, and, while a large window is open,
    those of the window up to `floor` too; `target` is the snapshot that closes the window. `ends`
    are the offsets behind the last acknowledged records, by "topic/partition"."""

    published: Snapshot = field(default_factory=Snapshot)
    target: str | None = None
    floor: int = 0
    ends: Mapping[str, int] = field(default_factory=dict)


class OutboxRow(asyncpg.Record):
    """A record as it goes to Kafka. Attributes read the row itself: no second object is made."""

    position: int = property(itemgetter("position"))  # type: ignore[assignment]
    topic: str = property(itemgetter("topic"))  # type: ignore[assignment]
    partition: int = property(itemgetter("partition"))  # type: ignore[assignment]
    key: bytes = property(itemgetter("key"))  # type: ignore[assignment]
    value: bytes = property(itemgetter("value"))  # type: ignore[assignment]
    headers: bytes = property(itemgetter("headers"))  # type: ignore[assignment]
    traceparent: str | None = property(itemgetter("traceparent"))  # type: ignore[assignment]

    @property
    def record(self) -> OutgoingRecord:
        return OutgoingRecord._make(self[1:7])

    @property
    def target(self) -> Target:
        """The partition that it goes to."""
        return self.topic, self.partition


# From the second to the seventh in the order of OutgoingRecord. No record is stamped ahead of the
# database's clock, whatever the clock of its writer was: the broker would refuse it permanently.
COLUMNS = """position, topic, partition, key, value, headers,
    (extract(epoch FROM least(recorded_at, statement_timestamp())) * 1000)::bigint AS milliseconds,
    traceparent"""

# Snapshot and rows come from one statement, so they belong together. Both branches are ranges of
# the index (transaction_id, position); the LIMITs keep every plan on it and bound the answer.
POLL = f"""
    WITH now AS MATERIALIZED (SELECT pg_current_snapshot()::text AS snapshot)
    SELECT new.*, now.snapshot
    FROM now LEFT JOIN LATERAL (
        (SELECT {COLUMNS}
         FROM outbox
         WHERE transaction_id >= $1::text::xid8
         ORDER BY transaction_id, position
         LIMIT $3)
        UNION ALL
        (SELECT {COLUMNS}
         FROM outbox
         WHERE transaction_id = ANY($2::text[]::xid8[]) AND transaction_id < $1::text::xid8
         ORDER BY transaction_id, position
         LIMIT $3)
    ) AS new ON true
"""  # noqa: S608

# As above, and each branch is ordered for the same reason: left alone, min() would walk through all
# that is published.
WINDOW_FLOOR = """
    SELECT min(position) - 1
    FROM (
        (SELECT position
         FROM outbox
         WHERE transaction_id >= $1::text::xid8
         ORDER BY transaction_id, position
         LIMIT 2147483647)
        UNION ALL
        (SELECT position
         FROM outbox
         WHERE transaction_id = ANY($2::text[]::xid8[]) AND transaction_id < $1::text::xid8
         ORDER BY transaction_id, position
         LIMIT 2147483647)
    ) AS new
"""

# A window too large for one answer is paged by position inside its two snapshots. Pages by
# (transaction_id, position) could put version 6 on an earlier page than version 5.
PAGE = f"""
    SELECT {COLUMNS}
    FROM outbox
    WHERE position > $4
      AND (transaction_id >= $1::text::xid8 OR transaction_id = ANY($2::text[]::xid8[]))
      AND pg_visible_in_snapshot(transaction_id, $3::text::pg_snapshot)
    ORDER BY position
    LIMIT $5
"""  # noqa: S608


# Of one partition, while it is behind the others.
PAGE_OF_TARGET = PAGE.replace("ORDER BY", "AND topic = $6 AND partition = $7\n    ORDER BY")


# No row that is visible is of a transaction that has not begun, except those of another cluster.
IS_AHEAD = """
    SELECT coalesce(
        (SELECT transaction_id FROM outbox ORDER BY transaction_id DESC, position DESC LIMIT 1)
            >= pg_snapshot_xmax(pg_current_snapshot()),
        false)
"""


# A row if as many were deleted as one statement can: more of them can be left.
DELETE_FROM_REST = "SELECT WHERE delete_from_outbox_rest($1) = $1"
IS_MORE_LEFT = "SELECT 1"


async def is_ahead(connection: asyncpg.Connection) -> bool:
    """Whether a dump brought rows with transaction ids that this cluster has not reached.

    Each poll would find them, and none would count as published.
    """
    ahead: bool = await connection.fetchval(IS_AHEAD)
    return ahead


async def poll(
    connection: asyncpg.Connection, published: Snapshot, rows_max: int
) -> tuple[str, list[OutboxRow] | None]:
    """The snapshot of this moment as text, and the rows new since `published` by position.

    None in place of the rows means: too many for one answer, page through the window instead.
    """
    rows = await connection.fetch(
        POLL, published.xmax, list(published.xip), rows_max, record_class=OutboxRow
    )
    snapshot: str = rows[0]["snapshot"]
    if len(rows) >= rows_max:
        return snapshot, None
    if rows[0].position is None:
        return snapshot, []
    return snapshot, sorted(rows, key=itemgetter("position"))


async def read_window_floor(connection: asyncpg.Connection, published: Snapshot) -> int:
    """The position just below the first row that `published` does not show; 0 if there is none."""
    floor = await connection.fetchval(WINDOW_FLOOR, published.xmax, list(published.xip))
    return floor or 0


async def read_page(
    connection: asyncpg.Connection,
    progress: RelayCheckpoint,
    rows_max: int,
    target: Target | None = None,
) -> Sequence[OutboxRow]:
    """The next rows of the open window, by position, or those of them that go to one partition;
    none when the window is done."""
    query, own = (PAGE, ()) if target is None else (PAGE_OF_TARGET, target)
    rows: list[OutboxRow] = await connection.fetch(
        query,
        progress.published.xmax,
        list(progress.published.xip),
        progress.target,
        progress.floor,
        rows_max,
        *own,
        record_class=OutboxRow,
    )
    return rows


async def keep_partitions(connection: asyncpg.Connection, now: datetime) -> None:
    """Create the partitions of the next hours, drop those that ended and are published.

    What cannot be done now, mostly because of a lock, is left for the next time: no
    writer waits for it, and publishing does not depend on it.
    """
    for hour in range(HOURS_AHEAD):
        await hold_shortly(connection, "SELECT create_outbox_partitions($1, 1)", now + hour * HOUR)
    names = await connection.fetch("SELECT ended_outbox_partitions($1)", now - KEPT)
    for (name,) in names:
        await hold_shortly(connection, "SELECT empty_outbox_partition($1)", name)
        await hold_shortly(connection, "SELECT drop_empty_outbox_partition($1)", name)
    await delete_from_rest(connection)


async def delete_from_rest(connection: asyncpg.Connection) -> None:
    """Delete published rows of the partition that cannot be dropped, for EMPTYING_SECONDS_MAX.

    After hours without a relay it has millions of them: writers add faster than one statement for
    each round would delete.
    """
    deadline = time.monotonic() + EMPTYING_SECONDS_MAX
    while (
        await postgres.attempt(connection, DELETE_SECONDS_MAX, DELETE_FROM_REST, DELETED_ROWS_MAX)
        == IS_MORE_LEFT
        and time.monotonic() < deadline
    ):
        pass


async def hold_shortly(connection: asyncpg.Connection, statement: str, *values: object) -> None:
    """`attempt` for what writers and the relay wait for meanwhile."""
    await postgres.attempt(connection, HOLD_SECONDS_MAX, statement, *values)
