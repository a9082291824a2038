"""A read model is what the events make it; if it is not, a rebuild reports and repairs it."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from shared.eventsourcing.history import EVENTS_PER_PAGE, History, to_message
from shared.messaging.records import parse_message
from shared.projections import rebuild
from shared.runtime.identifiers import new_id
from test_support.counter.counts import CREATE, READ_MODELS
from test_support.counter.followed import Store, Worker, add, kept_busy, some_history
from test_support.waits import HANGS_AFTER_SECONDS

TAMPER = "UPDATE sums SET total = total + 1 WHERE counter_id = $1"

HOLD = 0x686F6C64
"""Key of an advisory lock that stops a rebuild at the first row that it deletes from `sums`."""

STOP_AT_A_ROW = f"""
    CREATE FUNCTION wait_for_hold() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock({HOLD}); RETURN old; END $$;
    CREATE TRIGGER hold BEFORE DELETE ON sums FOR EACH ROW EXECUTE FUNCTION wait_for_hold()
"""

IS_STOPPED = """
    SELECT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE application_name = 'rebuild' AND wait_event = 'advisory'
          AND datname = current_database()
    )
"""


@pytest.fixture
async def worker(pool: asyncpg.Pool) -> Worker:
    await pool.execute(CREATE)
    return Worker(pool, READ_MODELS)


async def checked(database: str, store: Store) -> dict[str, bool]:
    """Which tables are as the events make them."""
    async with rebuild.open_rebuild(database, [store], READ_MODELS) as rebuilt:
        return {each.table: each.is_equal for each in await rebuild.check(rebuilt)}


async def rebuilt(database: str, store: Store) -> None:
    async with rebuild.open_rebuild(database, [store], READ_MODELS) as rebuilt:
        await rebuild.replace(rebuilt)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is different now stays so."""
    monkeypatch.setattr(rebuild, "CATCH_UP_SECONDS_MAX", 0)


async def test_history_holds_the_messages_that_were_published(
    store: Store, pool: asyncpg.Pool, worker: Worker
) -> None:
    await some_history(store)
    read = [parse_message(record) for record in await worker.new_records()]
    published = [replace(message, traceparent=None) for message in read]  # history has no traces

    async with pool.acquire() as connection:
        past = [
            to_message(event)
            async for page in History(connection, [store]).read_pages()  # type: ignore[arg-type]
            for event in page
        ]

    assert past == published


async def test_live_tables_are_equal_after_the_worker_took_all(
    store: Store, database: str, worker: Worker
) -> None:
    await some_history(store)
    await worker.catch_up()

    assert await checked(database, store) == {"counts": True, "sums": True}


async def test_more_events_than_a_page_are_taken_once_each(
    store: Store, database: str, worker: Worker
) -> None:
    counter = new_id()
    for start in range(1, 3 * EVENTS_PER_PAGE, 300):
        await add(store, counter, start, 300)
    await worker.catch_up()

    assert await checked(database, store) == {"counts": True, "sums": True}


@pytest.mark.usefixtures("impatient")
async def test_a_tampered_row_is_found_by_its_table_and_repaired(
    store: Store, database: str, worker: Worker
) -> None:
    [counter, *_] = await some_history(store)
    await worker.catch_up()
    await worker.pool.execute(TAMPER, counter)
    assert await checked(database, store) == {"counts": True, "sums": False}

    await rebuilt(database, store)

    assert await checked(database, store) == {"counts": True, "sums": True}


async def test_the_command_names_the_table_that_differs_and_repairs_it(
    store: Store, database: str, worker: Worker, impatient: None, capsys: pytest.CaptureFixture[str]
) -> None:
    [counter, *_] = await some_history(store)
    await worker.catch_up()
    await worker.pool.execute(TAMPER, counter)

    with pytest.raises(SystemExit, match="1"):
        await rebuild.run(database, [store], READ_MODELS, only_check=True)
    checked_lines = capsys.readouterr().out.splitlines()
    await rebuild.run(database, [store], READ_MODELS, only_check=False)
    repaired_lines = capsys.readouterr().out.splitlines()
    await rebuild.run(database, [store], READ_MODELS, only_check=True)

    assert checked_lines[0].startswith("counts: equal, 7 rows")
    assert checked_lines[1].startswith("sums: differs, 7 rows")
    assert repaired_lines[1].startswith("sums: repaired, 7 rows")


@pytest.mark.usefixtures("impatient")
async def test_rows_too_many_and_too_few_are_repaired(
    store: Store, database: str, worker: Worker
) -> None:
    await some_history(store)
    await worker.catch_up()
    await worker.pool.execute("DELETE FROM counts")
    await worker.pool.execute("INSERT INTO sums VALUES ($1, 0, 1)", new_id())

    await rebuilt(database, store)

    assert await checked(database, store) == {"counts": True, "sums": True}


async def test_a_check_changes_nothing_and_leaves_nothing(
    store: Store, database: str, worker: Worker
) -> None:
    tables = "SELECT relname FROM pg_class WHERE relname IN ('counts', 'sums')"
    await some_history(store)
    await worker.catch_up()
    before = await worker.pool.fetch("TABLE sums")

    await checked(database, store)

    assert await worker.pool.fetch("TABLE sums") == before
    assert len(await worker.pool.fetch(tables)) == 2


async def test_a_check_waits_for_what_the_worker_has_not_read_yet(
    store: Store, database: str, worker: Worker
) -> None:
    await some_history(store)

    async def catch_up_later() -> None:
        await asyncio.sleep(1)
        await worker.catch_up()

    results, _ = await asyncio.gather(checked(database, store), catch_up_later())
    assert results == {"counts": True, "sums": True}


async def test_the_worker_goes_on_after_a_rebuild_with_the_connections_it_has(
    store: Store, database: str, worker: Worker
) -> None:
    counters = await some_history(store)
    await worker.catch_up()
    for counter in counters:
        await worker.pool.execute(TAMPER, counter)

    await rebuilt(database, store)
    for counter in counters:
        version = (await store.read(counter))[-1].version
        await add(store, counter, version + 1, 2)
    await worker.catch_up()

    assert await checked(database, store) == {"counts": True, "sums": True}


async def test_a_worker_that_is_behind_takes_the_same_messages_later(
    store: Store, database: str, worker: Worker
) -> None:
    """The rebuilt table is ahead of it then: what it takes has been taken."""
    await some_history(store)
    await rebuilt(database, store)
    await worker.catch_up()

    assert await checked(database, store) == {"counts": True, "sums": True}


async def test_what_the_worker_takes_before_the_lock_is_put_in_place_too(
    store: Store, database: str, worker: Worker
) -> None:
    [counter, *_] = await some_history(store)
    await worker.catch_up()
    async with rebuild.open_rebuild(database, [store], READ_MODELS) as rebuilt:
        await rebuilt.catch_up()
        await add(store, counter, (await store.read(counter))[-1].version + 1)
        await worker.catch_up()

        assert all(each.is_equal for each in await rebuilt.put_in_place())

    assert await checked(database, store) == {"counts": True, "sums": True}


async def test_rebuilds_under_a_worker_and_writers_lose_and_repeat_nothing(
    store: Store, database: str, worker: Worker
) -> None:
    async with kept_busy(store, worker, [new_id() for _ in range(4)]):
        for _ in range(5):
            await rebuilt(database, store)
    await worker.catch_up()

    assert await checked(database, store) == {"counts": True, "sums": True}


async def test_a_writer_that_commits_late_is_waited_for(
    store: Store, database: str, worker: Worker, pool: asyncpg.Pool
) -> None:
    late = new_id()
    async with pool.acquire() as writer:
        transaction = writer.transaction()
        await transaction.start()
        await add(store.within(writer), late, 1)
        await add(store, new_id(), 1)
        async with rebuild.open_rebuild(database, [store], READ_MODELS) as rebuilt:
            catching_up = asyncio.create_task(rebuilt.catch_up())
            done, _ = await asyncio.wait([catching_up], timeout=1)
            assert not done
            await transaction.commit()
            await catching_up
            await worker.catch_up()
            assert all(each.is_equal for each in await rebuilt.compare())


async def test_a_cursor_that_does_not_wait_loses_what_commits_late(
    store: Store, pool: asyncpg.Pool
) -> None:
    """The negative control of the test before."""
    late = new_id()
    async with pool.acquire() as writer, pool.acquire() as reader:
        history = History(reader, [store])  # type: ignore[arg-type]
        transaction = writer.transaction()
        await transaction.start()
        await add(store.within(writer), late, 1)
        await add(store, new_id(), 1)
        [[first]] = [page async for page in history.read_pages()]
        await transaction.commit()

        assert [page async for page in history.read_pages(first.position)] == []


async def test_a_rebuild_that_is_killed_leaves_the_live_tables_as_they_were(
    store: Store, database: str, worker: Worker, pool: asyncpg.Pool
) -> None:
    """It dies while it puts things in place: one table is repaired, the other one not yet."""
    [counter, *_] = await some_history(store)
    await worker.catch_up()
    await pool.execute(TAMPER, counter)
    await pool.execute("DELETE FROM counts")
    before = await pool.fetch("SELECT * FROM sums ORDER BY counter_id")

    script = Path(__file__).with_name("rebuild_main.py")
    await pool.execute(STOP_AT_A_ROW)
    async with pool.acquire() as holder:
        await holder.execute("SELECT pg_advisory_lock($1)", HOLD)
        process = await asyncio.create_subprocess_exec(sys.executable, script, database)
        try:
            async with asyncio.timeout(HANGS_AFTER_SECONDS):
                while not await pool.fetchval(IS_STOPPED):
                    await asyncio.sleep(0.05)
        finally:
            process.kill()
            await process.wait()
        await holder.execute("SELECT pg_advisory_unlock($1)", HOLD)

    assert await pool.fetch("SELECT * FROM sums ORDER BY counter_id") == before
    assert await pool.fetchval("SELECT count(*) FROM counts") == 0
    await rebuilt(database, store)
    assert await checked(database, store) == {"counts": True, "sums": True}
