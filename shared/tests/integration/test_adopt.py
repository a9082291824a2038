"""A dump that is restored into another cluster, where its transaction ids lie ahead."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from local_stack.postgres import binaries
from local_stack.testing import new_database, throwaway_postgres
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.history import History
from shared.outbox import adopt, lease, outbox, replay
from shared.outbox.adopt import NotRestored
from shared.outbox.relay import ROWS_MAX
from shared.runtime.identifiers import new_id
from shared.runtime.progress import ProgressLine
from test_support.counter.counter import Counted, counted, some_metadata, store_of
from test_support.counter.kafka_log import kafka_log
from test_support.counter.relays import StartRelay, relays
from test_support.waits import HANGS_AFTER_SECONDS

PUBLISHED = 3

# Each iteration takes a transaction id.
SPEND_IDS = """
    DO $$ BEGIN
        FOR number IN 1..10000 LOOP
            PERFORM pg_current_xact_id();
            COMMIT;
        END LOOP;
    END $$
"""


@pytest.fixture(scope="module")
def other_cluster() -> Iterator[str]:
    """The superuser's DSN of a server with few transaction ids."""
    with throwaway_postgres() as dsns:
        yield dsns["postgres"]


@pytest.fixture
def restored(other_cluster: str) -> Iterator[str]:
    """The DSN of an empty database in the other cluster."""
    with new_database(other_cluster) as dsn:
        yield dsn


def dump_and_restore(source: str, target: str, folder: Path) -> None:
    file = folder / "dump"
    tools, environment = binaries(), os.environ | {"TZ": "UTC"}
    dump: list[str | Path] = [tools / "pg_dump", "--format=custom", f"--file={file}", source]
    restore: list[str | Path] = [
        tools / "pg_restore",
        "--no-owner",
        "--exit-on-error",
        f"--dbname={target}",
        file,
    ]
    for command in (dump, restore):
        subprocess.run(command, check=True, env=environment)


async def append(store: EventStore[Counted], stream: object, start: int, count: int) -> None:
    for first in range(start, start + count, 1_000):
        numbers = range(first, min(first + 1_000, start + count))
        events = counted(stream, *numbers)  # type: ignore[arg-type]
        await store.append(stream, first - 1, events, metadata=some_metadata())  # type: ignore[arg-type]


@pytest.mark.parametrize("unpublished", [10, ROWS_MAX + 1_000])
async def test_what_was_not_published_when_it_was_dumped_is_published_once_and_in_order(
    unpublished: int,
    database: str,
    store: EventStore[Counted],
    pool: asyncpg.Pool,
    restored: str,
    start_relay: StartRelay,
    kafka_servers: str,
    tmp_path: Path,
) -> None:
    counter = new_id()
    await pool.execute(SPEND_IDS)
    async with kafka_log(kafka_servers) as log:
        relay = start_relay()
        await append(store, counter, 1, PUBLISHED)
        await log.until(lambda: len(log.numbers[str(counter)]) == PUBLISHED)
        relay.terminate()
        await asyncio.to_thread(relay.wait)
        await append(store, counter, PUBLISHED + 1, unpublished)
        await asyncio.to_thread(dump_and_restore, database, restored, tmp_path)

        complaints = tmp_path / "of-the-restored"
        with relays(restored, complaints) as start_restored:
            refused = start_restored(kafka_servers)
            assert await asyncio.to_thread(refused.wait, HANGS_AFTER_SECONDS) == 1
            assert "run `adopt-outbox`" in complaints.read_text()
            async with asyncpg.create_pool(restored, min_size=1) as here:
                # Written here, with an id far behind the checkpoint, before the outbox is adopted.
                newest = PUBLISHED + unpublished + 1
                await append(store_of(here), counter, newest, 1)
                async with here.acquire() as connection:
                    assert await adopt.adopt(connection) == unpublished + 1  # type: ignore[arg-type]
                    with pytest.raises(NotRestored):
                        await adopt.adopt(connection)  # type: ignore[arg-type]
                start_restored(kafka_servers)
                await log.until(lambda: newest in log.numbers[str(counter)])
                await append(store_of(here), counter, newest + 1, 1)
                await log.until(lambda: newest + 1 in log.numbers[str(counter)])

    assert log.numbers[str(counter)] == list(range(1, newest + 2))


async def test_an_outbox_that_no_relay_has_read_is_refused_too_when_its_ids_lie_ahead(
    database: str,
    store: EventStore[Counted],
    pool: asyncpg.Pool,
    restored: str,
    kafka_servers: str,
    tmp_path: Path,
) -> None:
    """A relay would find its rows in each poll, and publish them again and again."""
    await pool.execute(SPEND_IDS)
    await append(store, new_id(), 1, 5)
    await asyncio.to_thread(dump_and_restore, database, restored, tmp_path)

    complaints = tmp_path / "of-the-restored"
    with relays(restored, complaints) as start_restored:
        refused = start_restored(kafka_servers)
        assert await asyncio.to_thread(refused.wait, HANGS_AFTER_SECONDS) == 1
    assert "run `adopt-outbox`" in complaints.read_text()
    connection = await asyncpg.connect(restored)
    try:
        assert await adopt.adopt(connection) == 5
        assert not await outbox.is_ahead(connection)
        assert await lease.acquire(connection, new_id()) is not None
    finally:
        await connection.close()


async def test_a_replay_of_a_restored_store_leaves_no_row_of_the_other_cluster(
    database: str, store: EventStore[Counted], pool: asyncpg.Pool, restored: str, tmp_path: Path
) -> None:
    await pool.execute(SPEND_IDS)
    await append(store, new_id(), 1, 5)
    await asyncio.to_thread(dump_and_restore, database, restored, tmp_path)

    async with asyncpg.create_pool(restored, min_size=1) as here, here.acquire() as connection:
        history = History(connection, [store_of(here)])  # type: ignore[arg-type]
        assert await replay.replay(connection, history, ProgressLine()) == 5  # type: ignore[arg-type]
        assert await connection.fetchval("SELECT count(*) FROM outbox") == 5
        assert not await outbox.is_ahead(connection)  # type: ignore[arg-type]
        assert await lease.acquire(connection, new_id()) is not None  # type: ignore[arg-type]
