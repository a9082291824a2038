"""One owner at a time; each take-over is a new epoch, which the old owner cannot write in."""

import asyncpg
import pytest

from shared import lease
from shared.identifiers import new_id
from shared.lease import ForeignCheckpoint, LeaseLost
from shared.outbox import Progress, Snapshot

EXPIRE = "UPDATE relay SET lease_until = '-infinity'"


async def test_a_held_lease_is_not_given_to_another(connection: asyncpg.Connection) -> None:
    assert await lease.acquire(connection, new_id()) is not None
    assert await lease.acquire(connection, new_id()) is None


async def test_a_take_over_begins_where_the_last_checkpoint_ended(
    connection: asyncpg.Connection,
) -> None:
    progress = Progress(Snapshot("120", ("110", "115")), "120:130:125", 42)
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
        await zombie[0].renew(connection)
    with pytest.raises(LeaseLost):
        await zombie[0].store(connection, Progress(Snapshot("999")))


async def test_a_lease_that_cannot_be_renewed_in_time_is_lost(
    connection: asyncpg.Connection, pool: asyncpg.Pool
) -> None:
    """A standby may take over when it ends, so the holder must not wait for the answer longer."""
    held = await lease.acquire(connection, new_id())
    assert held is not None
    held[0].valid_until = held[0].clock() + 0.2
    async with pool.acquire() as other, other.transaction():
        await other.execute("SELECT FROM relay FOR UPDATE")

        with pytest.raises(LeaseLost):
            await held[0].renew(connection)


async def test_the_checkpoint_of_another_cluster_is_refused(connection: asyncpg.Connection) -> None:
    await connection.execute("UPDATE relay SET system_identifier = 1")

    with pytest.raises(ForeignCheckpoint):
        await lease.acquire(connection, new_id())
