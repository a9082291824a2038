"""Migrations: each once, however often they are run; and none that was changed afterwards.
A pool: each use begins with a clean session."""

import asyncio

import asyncpg
import pytest

from shared.runtime import postgres
from shared.runtime.postgres import ChangedMigration, Migration
from shared.runtime.rights import NoSuchRole

FIRST = "shared/0001_event_store.sql"
NAMES = [
    FIRST,
    "shared/0002_relay.sql",
    "shared/0003_consumers.sql",
    "shared/0004_append_without_errors.sql",
    "shared/0005_refused_records.sql",
    "shared/0006_lost_records.sql",
    "shared/0007_streams_by_topic.sql",
    "shared/0008_relay_beats.sql",
    "shared/0009_served_versions.sql",
]

TAMPER = "UPDATE migrations SET sha256 = 'another' WHERE name = $1"


async def test_migrations_are_applied_once(empty_database: str) -> None:
    assert await postgres.migrate(empty_database, "shared") == NAMES
    assert await postgres.migrate(empty_database, "shared") == []


async def test_two_migrators_at_once_do_no_harm(empty_database: str) -> None:
    applied = await asyncio.gather(*(postgres.migrate(empty_database, "shared") for _ in range(3)))

    assert sorted(map(len, applied)) == [0, 0, len(NAMES)]


async def test_a_migration_that_was_changed_afterwards_is_refused(empty_database: str) -> None:
    await postgres.migrate(empty_database, "shared")
    connection = await asyncpg.connect(empty_database)
    await connection.execute(TAMPER, FIRST)
    await connection.close()

    with pytest.raises(ChangedMigration, match=f"{FIRST} was changed after it was applied"):
        await postgres.migrate(empty_database, "shared")


async def test_a_database_that_kept_no_hashes_counts_as_changed(empty_database: str) -> None:
    connection = await asyncpg.connect(empty_database)
    await connection.execute("CREATE TABLE migrations (name text PRIMARY KEY)")
    await connection.execute("INSERT INTO migrations VALUES ($1)", FIRST)
    await connection.close()

    with pytest.raises(ChangedMigration, match="start again"):
        await postgres.migrate(empty_database, "shared")


async def test_a_migration_that_fails_leaves_nothing(empty_database: str) -> None:
    connection = await asyncpg.connect(empty_database)
    await connection.execute(postgres.CREATE_MIGRATIONS)
    failing = Migration(name="test/0001.sql", sql="CREATE TABLE half (); SELECT 1 / 0")

    with pytest.raises(asyncpg.DivisionByZeroError):
        await postgres.apply(connection, failing)

    assert await connection.fetchval("SELECT to_regclass('half')") is None
    assert await postgres.find_missing(connection, [failing]) == [failing]
    await connection.close()


async def test_a_service_role_that_does_not_exist_is_refused(empty_database: str) -> None:
    with pytest.raises(NoSuchRole, match="no_such_role"):
        await postgres.migrate(empty_database, "shared", service_role="no_such_role")


async def test_a_transaction_left_open_does_not_meet_the_next_user(empty_database: str) -> None:
    async with postgres.open_pool(empty_database, name="test", connections_max=1) as pool:
        async with pool.acquire() as connection:
            await connection.execute("BEGIN")
        async with pool.acquire() as connection:
            assert not connection.is_in_transaction()


async def test_each_connection_is_asked_once_whether_the_database_was_restored(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore ends all connections; an answer that could not be had is asked for again."""
    asked: list[int] = []
    errors: list[Exception] = [asyncpg.ObjectNotInPrerequisiteStateError("recovery is in progress")]

    async def ask(connection: postgres.Connection) -> None:
        asked.append(connection.get_server_pid())
        if errors:
            raise errors.pop()

    monkeypatch.setattr(postgres, "refuse_restored", ask)
    guard = postgres.RestoredGuard()
    async with postgres.open_pool(empty_database, name="test", connections_max=1) as pool:
        async with pool.acquire() as connection:
            with pytest.raises(asyncpg.PostgresError):
                await guard.check(connection)
            await guard.check(connection)
        async with pool.acquire() as connection:
            await guard.check(connection)
            first = connection.get_server_pid()
        await pool.expire_connections()
        async with pool.acquire() as connection:
            await guard.check(connection)
            second = connection.get_server_pid()

    assert asked == [first, first, second]
    assert guard._passed == set(), "the server can use the number of an ended process again"
