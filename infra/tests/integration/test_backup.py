"""The snapshots of a backup are of one moment; what is not a backup, or would be lost, is refused.

The whole way, to equal hours in another stack, takes minutes: `e2e-tests/test_backup.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest

from fetching.errors import Failure
from local_stack import backup, issuer
from local_stack.down import down
from local_stack.hometown import HOMETOWN
from local_stack.postgres import SUPERUSER, dsn, owner
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.testing import TEST_POSTGRES, new_folder, throwaway_stack
from local_stack.up import up
from shared.outbox import outbox
from shared.runtime import postgres
from shared.runtime.identifiers import new_id
from test_support.counter.counter import counted, some_metadata, store_of
from test_support.waits import HANGS_AFTER_SECONDS

BACKUPS = 10
LONG_AGO = datetime(2016, 1, 1, tzinfo=UTC)
CAUSES, EFFECTS = "users", "orders"
COUNT = "SELECT count(*) FROM events"


@pytest.fixture(scope="module")
def context() -> Iterator[StackContext]:
    """A server with the event stores of the services."""
    with throwaway_stack(StackSpec(processes=(TEST_POSTGRES,))) as context:
        for database in (CAUSES, EFFECTS):
            asyncio.run(postgres.migrate(dsn(context, owner(database), database), "shared"))
        yield context


@asynccontextmanager
async def writing(context: StackContext) -> AsyncIterator[None]:
    """Inside, each event of one store is followed by its effect in the other one."""
    async with (
        asyncpg.create_pool(dsn(context, SUPERUSER, CAUSES), min_size=1) as causes,
        asyncpg.create_pool(dsn(context, SUPERUSER, EFFECTS), min_size=1) as effects,
    ):

        async def write() -> None:
            while True:
                for pool in (causes, effects):
                    event = new_id()
                    await store_of(pool).append(
                        event, 0, counted(event, 1), metadata=some_metadata()
                    )

        writers = [asyncio.create_task(write()) for _ in range(2)]
        yield
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)


async def count_in(context: StackContext, database: str, snapshot: str) -> int:
    connection = await asyncpg.connect(dsn(context, SUPERUSER, database))
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
            count: int = await connection.fetchval(COUNT)
            return count
    finally:
        await connection.close()


async def effects_without_cause(context: StackContext) -> int:
    """How many a backup has that is taken now."""
    async with backup.snapshots(context) as (_, names):
        causes = await count_in(context, CAUSES, names[CAUSES])
        return await count_in(context, EFFECTS, names[EFFECTS]) - causes


async def test_no_effect_is_in_a_backup_without_its_cause(context: StackContext) -> None:
    async with asyncio.timeout(HANGS_AFTER_SECONDS), writing(context):
        for _ in range(BACKUPS):
            assert await effects_without_cause(context) <= 0


async def test_without_the_lock_an_effect_is_in_a_backup_without_its_cause(
    context: StackContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    monkeypatch.setattr(backup, "LOCK", "SELECT")
    monkeypatch.setattr(backup, "EVENT_STORES", (CAUSES, EFFECTS))
    async with asyncio.timeout(HANGS_AFTER_SECONDS), writing(context):
        while await effects_without_cause(context) <= 0:
            pass


@pytest.fixture
def another() -> Iterator[Settings]:
    """Those of a stack that is not started yet."""
    folder = RunFolder(new_folder())
    yield settings_in(folder.path)
    down(HOMETOWN, folder)
    folder.remove()


async def append_one(context: StackContext, database: str) -> None:
    async with asyncpg.create_pool(dsn(context, SUPERUSER, database), min_size=1) as pool:
        event = new_id()
        await store_of(pool).append(event, 0, counted(event, 1), metadata=some_metadata())


def read_events(context: StackContext, database: str) -> list[asyncpg.Record]:
    async def read() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(dsn(context, SUPERUSER, database))
        try:
            return await connection.fetch("SELECT * FROM events ORDER BY position")
        finally:
            await connection.close()

    return asyncio.run(read())


def test_restored_event_stores_have_every_event_of_before_the_backup_and_no_other(
    context: StackContext, another: Settings, tmp_path: Path
) -> None:
    issuer.establish(context.folder)
    for database in (CAUSES, EFFECTS):
        asyncio.run(append_one(context, database))
    before = {database: read_events(context, database) for database in (CAUSES, EFFECTS)}
    backup.backup(context.settings, tmp_path / "backup")
    asyncio.run(append_one(context, CAUSES))

    restored = backup.restore_event_stores(HOMETOWN, another, tmp_path / "backup")

    assert all(before.values())
    assert {database: read_events(restored, database) for database in before} == before
    assert restored.passwords == context.passwords
    with pytest.raises(Failure, match="run `make republish`"):
        up(HOMETOWN, another)


OF_AN_EARLIER_RELEASE = 5
"""Migrations of the event store that it had: the next one changed what adopt-outbox writes."""


@pytest.fixture
def earlier(monkeypatch: pytest.MonkeyPatch) -> Iterator[StackContext]:
    """A server with the event stores of an earlier release."""
    list_all = postgres.list_migrations
    with (
        throwaway_stack(StackSpec(processes=(TEST_POSTGRES,))) as context,
        monkeypatch.context() as m,
    ):
        m.setattr(postgres, "list_migrations", lambda name: list_all(name)[:OF_AN_EARLIER_RELEASE])
        for database in (CAUSES, EFFECTS):
            asyncio.run(postgres.migrate(dsn(context, owner(database), database), "shared"))
            asyncio.run(append_one(context, database))
        issuer.establish(context.folder)
        yield context


def test_a_backup_of_an_earlier_release_is_migrated(
    earlier: StackContext, another: Settings, tmp_path: Path
) -> None:
    before = {database: read_events(earlier, database) for database in (CAUSES, EFFECTS)}
    backup.backup(earlier.settings, tmp_path / "backup")

    restored = backup.restore_event_stores(HOMETOWN, another, tmp_path / "backup")

    assert all(before.values())
    assert {database: read_events(restored, database) for database in before} == before


async def test_no_partition_is_dropped_before_it_is_dumped(
    context: StackContext, tmp_path: Path
) -> None:
    owned = await asyncpg.connect(dsn(context, owner(CAUSES), CAUSES))
    try:
        await outbox.keep_partitions(owned, LONG_AGO)
        async with backup.snapshots(context) as (_, names):
            await outbox.keep_partitions(owned, LONG_AGO + timedelta(days=1))
            await asyncio.to_thread(
                backup.call_program,
                "pg_dump",
                f"--snapshot={names[CAUSES]}",
                f"--file={tmp_path / CAUSES}",
                database_url=dsn(context, SUPERUSER, CAUSES),
            )
        assert "outbox_20160101_00" in (tmp_path / CAUSES).read_text()
        await outbox.keep_partitions(owned, LONG_AGO + timedelta(days=1))
        assert await owned.fetchval("SELECT to_regclass('outbox_20160101_00')") is None
    finally:
        await owned.close()


def test_a_backup_that_fails_leaves_nothing(
    context: StackContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.establish(context.folder)
    with monkeypatch.context() as without_room:
        without_room.setattr(backup, "copy_secret", fail)
        with pytest.raises(OSError, match="no space"):
            backup.backup(context.settings, tmp_path / "backup")

    backup.backup(context.settings, tmp_path / "backup")


def fail(*_: object) -> None:
    raise OSError("no space")


def settings_in(folder: Path) -> Settings:
    return Settings(run_dir=folder, ports="free", ports_given={})


def test_a_folder_without_a_manifest_is_no_backup(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no complete backup"):
        backup.restore(HOMETOWN, settings_in(tmp_path / "run"), tmp_path)


def test_a_restore_overwrites_no_data(tmp_path: Path) -> None:
    run_folder = RunFolder(tmp_path / "run")
    run_folder.create()
    run_folder.secrets.write_text("{}")
    (tmp_path / backup.MANIFEST).write_text('{"format": 1, "databases": []}')

    with pytest.raises(Failure, match="has data"):
        backup.restore(HOMETOWN, settings_in(run_folder.path), tmp_path)

    assert run_folder.secrets.read_text() == "{}"


def test_a_backup_overwrites_nothing(context: StackContext, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="exists"):
        backup.backup(context.settings, tmp_path)
