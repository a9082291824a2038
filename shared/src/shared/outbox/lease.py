"""The right to publish: a lease on the one `relay` row, with an epoch for each holder."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from shared.messaging.log_ends import RecordsLost
from shared.outbox.outbox import RelayCheckpoint, Snapshot
from shared.runtime import postgres

LEASE_SECONDS = 5.0
RENEW_SECONDS = 1.0
SAFETY_SECONDS = 0.5
"""A holder stops this much before its lease ends, so that clock steps of a tick do no harm."""

# An advisory lock would die with a pooled session and has no epoch.
ACQUIRE = """
    UPDATE relay
    SET owner = $1,
        epoch = epoch + 1,
        lease_until = clock_timestamp() + make_interval(secs => $2),
        beat_at = NULL,
        system_identifier = (SELECT system_identifier FROM pg_control_system()),
        timeline = current_timeline()
    WHERE (lease_until < clock_timestamp() OR owner = $1
           OR (epoch = $3 AND lease_until = $4))
      AND coalesce(system_identifier, (SELECT system_identifier FROM pg_control_system()))
          = (SELECT system_identifier FROM pg_control_system())
      AND published_xmax <= pg_snapshot_xmax(pg_current_snapshot())
      AND records_lost IS NULL
      AND NOT is_restored()
    RETURNING epoch, published_xmax::text, published_xip::text[], target::text, floor_position,
              acknowledged
"""

FOREIGN = """
    SELECT coalesce(system_identifier <> (SELECT system_identifier FROM pg_control_system()), false)
        OR published_xmax > pg_snapshot_xmax(pg_current_snapshot())
    FROM relay
"""

RECORDS_LOST = "SELECT records_lost FROM relay"

TERM = "SELECT epoch, lease_until FROM relay"

RENEW = """
    UPDATE relay
    SET lease_until = clock_timestamp() + make_interval(secs => $3),
        beat_at = clock_timestamp() - make_interval(secs => $4)
    WHERE owner = $1 AND epoch = $2
"""

RELEASE = """
    UPDATE relay
    SET owner = NULL, lease_until = '-infinity'
    WHERE owner = $1 AND epoch = $2
"""

RESTART = """
    UPDATE relay
    SET owner = NULL,
        epoch = epoch + 1,
        lease_until = '-infinity',
        published_xmax = $1::text::xid8,
        published_xip = $2::text[]::xid8[],
        target = NULL,
        floor_position = 0,
        system_identifier = (SELECT system_identifier FROM pg_control_system()),
        timeline = current_timeline()
"""
"""Take the lease from any owner, and let the checkpoint begin at a snapshot of this cluster."""

# No other owner takes over before the transaction of this ends.
HOLD = "SELECT FROM relay WHERE owner = $1 AND epoch = $2 FOR SHARE"

CHECKPOINT = """
    UPDATE relay
    SET published_xmax = $3::text::xid8,
        published_xip = $4::text[]::xid8[],
        target = $5::text::pg_snapshot,
        floor_position = $6,
        acknowledged = $7
    WHERE owner = $1 AND epoch = $2
"""

REPORT_LOSS = """
    UPDATE relay
    SET owner = NULL, lease_until = '-infinity', records_lost = $3
    WHERE owner = $1 AND epoch = $2
"""


class LeaseLost(Exception):
    """Another relay may be publishing now: this process must stop at once, without a flush."""


class ForeignCheckpoint(Exception):
    """The outbox is of another cluster, after a restore: run `adopt-outbox`, then start again."""


@dataclass(slots=True)
class Lease:
    """The right to publish in `epoch`, until `valid_until` on this process's monotonic clock."""

    owner: UUID
    epoch: int
    valid_until: float
    clock: Callable[[], float] = time.monotonic

    @property
    def is_over(self) -> bool:
        """Whether another owner may have taken over by now."""
        return self.clock() >= self.valid_until

    def check(self) -> None:
        """Raises LeaseLost unless the lease surely still holds. Call it before each send."""
        if self.is_over:
            raise LeaseLost

    async def renew(self, connection: asyncpg.Connection, beat_seconds: float) -> None:
        """Extend the lease, and note that the owner's loop came round `beat_seconds` ago.

        Raises:
            LeaseLost: another owner took over, or there was no answer before the lease ended.
        """
        asked_at = self.clock()
        await self._update(connection, RENEW, LEASE_SECONDS, beat_seconds)
        self.valid_until = asked_at + LEASE_SECONDS - SAFETY_SECONDS

    async def release(self, connection: asyncpg.Connection) -> None:
        """Let a standby take over now instead of when the lease runs out."""
        await connection.execute(RELEASE, self.owner, self.epoch)

    async def store(self, connection: asyncpg.Connection, progress: RelayCheckpoint) -> None:
        """Write the checkpoint.

        Raises:
            LeaseLost: another owner took over, or there was no answer before the lease ended.
        """
        published = progress.published
        await self._update(
            connection,
            CHECKPOINT,
            published.xmax,
            list(published.xip),
            progress.target,
            progress.floor,
            json.dumps(dict(progress.ends)),
        )

    async def report_loss(self, connection: asyncpg.Connection, loss: RecordsLost) -> None:
        """Release the lease for no other relay: none publishes before a replay.

        What is published now would get offsets of lost records, and hide that they are missing.
        """
        await connection.execute(REPORT_LOSS, self.owner, self.epoch, str(loss))

    async def hold(self, connection: asyncpg.Connection) -> None:
        """Keep the lease until the caller's transaction ends.

        Raises:
            LeaseLost: another owner took over.
        """
        if await connection.fetchrow(HOLD, self.owner, self.epoch) is None:
            raise LeaseLost

    async def _update(
        self, connection: asyncpg.Connection, statement: str, *values: object
    ) -> None:
        """Change the row while it is this epoch's; a standby does not wait for the answer."""
        try:
            async with asyncio.timeout(self.valid_until - self.clock()):
                status = await connection.execute(statement, self.owner, self.epoch, *values)
        except TimeoutError:
            raise LeaseLost from None
        if status != "UPDATE 1":
            raise LeaseLost


Term = tuple[int, datetime]
"""The epoch of a lease, and its end on the database's clock."""


class Standby:
    """Takes the lease when its holder has released it or stopped to renew it.

    A holder that has not renewed for LEASE_SECONDS of this process's clock has stopped, also when
    its lease ends later on the database's clock: that clock may have been put back.
    """

    def __init__(self, owner: UUID, clock: Callable[[], float] = time.monotonic) -> None:
        self._owner = owner
        self._clock = clock
        self._term: Term | None = None
        self._term_since = 0.0

    async def acquire(self, connection: asyncpg.Connection) -> tuple[Lease, RelayCheckpoint] | None:
        """See `acquire`. Call it again and again."""
        row = await connection.fetchrow(TERM)
        term = (row["epoch"], row["lease_until"]) if row else None
        asked_at = self._clock()
        if term != self._term:
            self._term, self._term_since = term, asked_at
        is_abandoned = asked_at - self._term_since > LEASE_SECONDS
        return await acquire(
            connection, self._owner, self._clock, abandoned=term if is_abandoned else None
        )


async def acquire(
    connection: asyncpg.Connection,
    owner: UUID,
    clock: Callable[[], float] = time.monotonic,
    *,
    abandoned: Term | None = None,
) -> tuple[Lease, RelayCheckpoint] | None:
    """Take the lease if it is free or `abandoned`; with it comes the progress of the last holder.

    Raises:
        ForeignCheckpoint: the stored progress is not of this PostgreSQL cluster.
        Restored: the database is of an older moment than the topics.
        RecordsLost: a relay has reported that Kafka lost records.
    """
    asked_at = clock()
    row = await connection.fetchrow(ACQUIRE, owner, LEASE_SECONDS, *(abandoned or (None, None)))
    if row is None:
        if await connection.fetchval(FOREIGN):
            raise ForeignCheckpoint
        await postgres.refuse_restored(connection)
        if loss := await connection.fetchval(RECORDS_LOST):
            raise RecordsLost(loss)
        return None
    lease = Lease(owner, row["epoch"], asked_at + LEASE_SECONDS - SAFETY_SECONDS, clock)
    published = Snapshot(row["published_xmax"], tuple(row["published_xip"]))
    ends = json.loads(row["acknowledged"])
    return lease, RelayCheckpoint(published, row["target"], row["floor_position"], ends)
