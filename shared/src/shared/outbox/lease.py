"""The right to publish: a lease on the one `relay` row, with an epoch for each holder."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from shared.outbox.outbox import RelayCheckpoint, Snapshot

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
        system_identifier = (SELECT system_identifier FROM pg_control_system())
    WHERE (lease_until < clock_timestamp() OR owner = $1)
      AND coalesce(system_identifier, (SELECT system_identifier FROM pg_control_system()))
          = (SELECT system_identifier FROM pg_control_system())
    RETURNING epoch, published_xmax::text, published_xip::text[], target::text, floor_position
"""

FOREIGN = """
    SELECT system_identifier IS DISTINCT FROM (SELECT system_identifier FROM pg_control_system())
    FROM relay
    WHERE system_identifier IS NOT NULL
"""

RENEW = """
    UPDATE relay
    SET lease_until = clock_timestamp() + make_interval(secs => $3)
    WHERE owner = $1 AND epoch = $2
"""

RELEASE = """
    UPDATE relay
    SET owner = NULL, lease_until = '-infinity'
    WHERE owner = $1 AND epoch = $2
"""

CHECKPOINT = """
    UPDATE relay
    SET published_xmax = $3::text::xid8,
        published_xip = $4::text[]::xid8[],
        target = $5::text::pg_snapshot,
        floor_position = $6
    WHERE owner = $1 AND epoch = $2
"""


class LeaseLost(Exception):
    """Another relay may be publishing now: this process must stop at once, without a flush."""


class ForeignCheckpoint(Exception):
    """The checkpoint is of another cluster: reset the row `relay` to publish all of it again."""


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

    async def renew(self, connection: asyncpg.Connection) -> None:
        """Extend the lease.

        Raises:
            LeaseLost: another owner took over, or there was no answer before the lease ended.
        """
        asked_at = self.clock()
        await self._update(connection, RENEW, LEASE_SECONDS)
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
        )

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


async def acquire(
    connection: asyncpg.Connection, owner: UUID, clock: Callable[[], float] = time.monotonic
) -> tuple[Lease, RelayCheckpoint] | None:
    """Take the lease if it is free; with it comes the progress of the last holder.

    Raises:
        ForeignCheckpoint: the stored progress is not of this PostgreSQL cluster.
    """
    asked_at = clock()
    row = await connection.fetchrow(ACQUIRE, owner, LEASE_SECONDS)
    if row is None:
        if await connection.fetchval(FOREIGN):
            raise ForeignCheckpoint
        return None
    lease = Lease(owner, row["epoch"], asked_at + LEASE_SECONDS - SAFETY_SECONDS, clock)
    published = Snapshot(row["published_xmax"], tuple(row["published_xip"]))
    return lease, RelayCheckpoint(published, row["target"], row["floor_position"])
