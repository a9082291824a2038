"""One owner at a time; each take-over is a new epoch, which the old owner cannot write in."""

from functools import partial

import asyncpg
import pytest

from shared.outbox import backlog, lease
from shared.outbox.lease import (
    LEASE_SECONDS,
    SAFETY_SECONDS,
    ForeignCheckpoint,
    LeaseLost,
    Standby,
)
from shared.outbox.outbox import RelayCheckpoint, Snapshot
from shared.runtime.identifiers import new_id

EXPIRE = "UPDATE relay SET lease_until = '-infinity'"


async def test_a_held_lease_is_not_given_to_another(connection: asyncpg.Connection) -> None:
    assert await lease.acquire(connection, new_id()) is not None
    assert await lease.acquire(connection, new_id()) is None


async def test_a_take_over_begins_where_the_last_checkpoint_ended(
    connection: asyncpg.Connection,
) -> None:
    progress = RelayCheckpoint(Snapshot("120", ("110", "115")), "120:130:125", 42)
    first = await lease.acquire(connection, new_id())
    assert first is not None
    await first[0].store(connection, progress)
    await first[0].release(connection)

    second = await lease.acquire(connection, new_id())

    assert second is not None
    assert second[1] == progress
    assert second[0].epoch == first[0].epoch + 1


async def test_a_zombie_can_neither_renew_nor_store(connection: asyncpg.Connection) -> None:
    zombie = await lease.acquire(connection, new_id())
    assert zombie is not None
    await connection.execute(EXPIRE)
    await lease.acquire(connection, new_id())

    with pytest.raises(LeaseLost):
        await zombie[0].renew(connection, 0.0)
    with pytest.raises(LeaseLost):
        await zombie[0].store(connection, RelayCheckpoint(Snapshot("999")))


@pytest.mark.parametrize("what", ["renew", "store"])
async def test_a_lease_that_cannot_be_renewed_in_time_is_lost(
    what: str, connection: asyncpg.Connection, pool: asyncpg.Pool
) -> None:
    """A standby may take over when it ends, so the holder must not wait for the answer longer."""
    acquired = await lease.acquire(connection, new_id())
    assert acquired is not None
    held, _ = acquired
    held.valid_until = held.clock() + 0.2
    attempts = {
        "renew": partial(held.renew, beat_seconds=0.0),
        "store": partial(held.store, progress=RelayCheckpoint()),
    }
    async with pool.acquire() as other, other.transaction():
        await other.execute("SELECT FROM relay FOR UPDATE")

        with pytest.raises(LeaseLost):
            await attempts[what](connection)


class Clock:
    """Advances by a second each time it is read."""

    now = 100.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


async def test_a_lease_counts_from_before_it_was_asked_for_and_ends_a_little_early(
    connection: asyncpg.Connection,
) -> None:
    """So that it ends here before it ends in the database, however long the answer took."""
    clock = Clock()

    held = await lease.acquire(connection, new_id(), clock)
    assert held is not None
    assert held[0].valid_until == 101 + LEASE_SECONDS - SAFETY_SECONDS

    clock.now = 102
    await held[0].renew(connection, 0.0)
    assert held[0].valid_until == 103 + LEASE_SECONDS - SAFETY_SECONDS
    held[0].check()

    clock.now = held[0].valid_until - 1
    with pytest.raises(LeaseLost):
        held[0].check()


PUT_BACK = "UPDATE relay SET lease_until = lease_until + interval '1 hour'"
"""The end of a lease as it is when the clock of the database was put back by an hour."""


async def test_a_lease_that_is_not_renewed_is_over_also_when_the_clock_was_put_back(
    connection: asyncpg.Connection,
) -> None:
    dead = await lease.acquire(connection, new_id())
    assert dead is not None
    await connection.execute(PUT_BACK)
    clock = Clock()
    standby = Standby(new_id(), clock)

    assert await standby.acquire(connection) is None
    clock.now += LEASE_SECONDS
    taken = await standby.acquire(connection)

    assert taken is not None
    assert taken[0].epoch == dead[0].epoch + 1
    ends_in: float = await connection.fetchval(
        "SELECT extract(epoch FROM lease_until - clock_timestamp())::float FROM relay"
    )
    assert ends_in <= LEASE_SECONDS, "no later relay has to wait for it"


async def test_a_lease_that_is_renewed_is_not_taken_whatever_the_clocks_say(
    connection: asyncpg.Connection,
) -> None:
    """The negative control: the holder is alive, so a second relay would send at the same time."""
    held = await lease.acquire(connection, new_id())
    assert held is not None
    clock = Clock()
    standby = Standby(new_id(), clock)
    for _ in range(3):
        await held[0].renew(connection, 0.0)
        await connection.execute(PUT_BACK)
        assert await standby.acquire(connection) is None
        clock.now += LEASE_SECONDS


async def test_the_checkpoint_of_another_cluster_is_refused(connection: asyncpg.Connection) -> None:
    await connection.execute("UPDATE relay SET system_identifier = 1")

    with pytest.raises(ForeignCheckpoint):
        await lease.acquire(connection, new_id())


async def test_a_renewal_stores_when_the_loop_of_the_holder_came_round(
    connection: asyncpg.Connection,
) -> None:
    held = await lease.acquire(connection, new_id())
    assert held is not None
    assert (await backlog.read(connection)).beat_seconds is None

    await held[0].renew(connection, beat_seconds=100.0)

    found = await backlog.read(connection)
    assert found.is_held
    assert found.beat_seconds is not None
    assert 100 <= found.beat_seconds < 200
    await held[0].release(connection)
    assert not (await backlog.read(connection)).is_held
    assert await lease.acquire(connection, new_id()) is not None
    assert (await backlog.read(connection)).beat_seconds is None, (
        "it is not that of the next holder"
    )
