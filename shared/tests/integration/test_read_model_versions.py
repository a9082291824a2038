"""A new version of a read model is filled next to the old one; readers miss nothing meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
import pytest

from shared.messaging.messages import Message
from shared.projections import rebuild, versions
from shared.projections.read_models import ReadModel
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Connection
from test_support.counter.counter import CODEC, TOPIC
from test_support.counter.counts import CREATE, READ_MODELS
from test_support.counter.followed import WRITE_SECONDS, Store, Worker, add, kept_busy, some_history

STREAMS = 4
SWITCHES = 10

CREATE_SECOND = """
    CREATE TABLE counts_2 (
        counter_id uuid PRIMARY KEY,
        number integer NOT NULL,
        changes integer NOT NULL,
        version integer NOT NULL
    )
"""

COUNT_CHANGES = """
    INSERT INTO counts_2 AS known (counter_id, number, changes, version)
    VALUES ($1, $2, 1, $3)
    ON CONFLICT (counter_id) DO UPDATE
    SET number = excluded.number, changes = known.changes + 1, version = excluded.version
    WHERE known.version < excluded.version
"""

OF_FIRST = "SELECT counter_id, number, number AS changes FROM counts"
OF_SECOND = "SELECT counter_id, number, changes FROM counts_2"
"""A counter counts its events, so its number is that of its changes."""
READERS = {1: OF_FIRST, 2: OF_SECOND}


async def count_changes(connection: Connection, messages: Sequence[Message]) -> None:
    for message in messages:
        event = CODEC.read(message)
        await connection.execute(
            COUNT_CHANGES, event.counter_id, event.number, message.stream_version
        )


SECOND = ReadModel(name="counts", version=2, topic=TOPIC, types=("counted",), project=count_changes)
MODELS = (*READ_MODELS, SECOND)


@pytest.fixture
async def worker(pool: asyncpg.Pool) -> Worker:
    """The worker of the release before: it has one version."""
    await pool.execute(CREATE)
    return Worker(pool, READ_MODELS)


async def upgrade(worker: Worker) -> None:
    """Create the table, and let the worker fill it as well from now on."""
    await worker.pool.execute(CREATE_SECOND)
    worker.follow(MODELS)


async def fill(database: str, store: Store) -> None:
    await rebuild.run(database, [store], MODELS, only_check=False, version=2)


class Reading:
    """Reads all the time. Each counter must be there, with all of its changes."""

    def __init__(self, pool: asyncpg.Pool, counters: Sequence[UUID]) -> None:
        self._pool = pool
        self._counters = counters
        self.statements: list[str] = []
        self.missed = 0

    async def read(self) -> None:
        statement = await versions.choose(self._pool, "counts", READERS)
        rows = {row["counter_id"]: row for row in await self._pool.fetch(statement)}
        self.statements.append(statement)
        for counter in self._counters:
            row = rows.get(counter)
            self.missed += row is None or row["changes"] != row["number"]

    @property
    def switches(self) -> int:
        pairs = zip(self.statements, self.statements[1:], strict=False)
        return sum(one != other for one, other in pairs)


@asynccontextmanager
async def busy(store: Store, worker: Worker) -> AsyncIterator[Reading]:
    """While writers write, the worker follows and readers read."""
    counters = [new_id() for _ in range(STREAMS)]
    for counter in counters:
        await add(store, counter, 1)
    await worker.catch_up()
    reading = Reading(worker.pool, counters)
    async with kept_busy(store, worker, counters, reading.read):
        yield reading


async def wait_for_reads(reading: Reading, count: int = 5) -> None:
    enough = len(reading.statements) + count
    while len(reading.statements) < enough:
        await asyncio.sleep(WRITE_SECONDS)


async def serve(database: str, version: int) -> None:
    await versions.run(database, MODELS, version)


async def test_readers_get_the_new_version_when_it_is_whole(
    store: Store, database: str, worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    counters = await some_history(store)
    await worker.catch_up()
    await upgrade(worker)
    reading = Reading(worker.pool, counters)
    await reading.read()

    await fill(database, store)
    await reading.read()

    assert reading.statements == [OF_FIRST, OF_SECOND]
    assert reading.missed == 0
    assert capsys.readouterr().out.splitlines()[-1] == "counts: version 2 is served"


async def test_no_read_misses_anything_while_a_version_is_filled_and_switched(
    store: Store, database: str, worker: Worker
) -> None:
    async with busy(store, worker) as reading:
        await upgrade(worker)
        await wait_for_reads(reading)
        await fill(database, store)
        for _ in range(SWITCHES):
            await wait_for_reads(reading)
            await serve(database, 1)
            await wait_for_reads(reading)
            await serve(database, 2)
        await wait_for_reads(reading)
    await worker.catch_up()

    assert reading.missed == 0
    assert reading.switches == 1 + 2 * SWITCHES
    await rebuild.run(database, [store], MODELS, only_check=True)


async def test_readers_of_a_version_that_was_not_filled_miss_the_past(
    store: Store, database: str, worker: Worker
) -> None:
    """The negative control of the test before."""
    async with busy(store, worker) as reading:
        await upgrade(worker)
        await worker.pool.execute(versions.NOTE, "counts", 2)
        await wait_for_reads(reading)

    assert reading.missed > 0


async def test_a_version_that_was_never_filled_is_not_served(
    store: Store, database: str, worker: Worker
) -> None:
    counters = await some_history(store)
    await worker.catch_up()
    await upgrade(worker)

    with pytest.raises(SystemExit, match="version 2 of counts was not served before"):
        await serve(database, 2)

    reading = Reading(worker.pool, counters)
    await reading.read()
    assert reading.statements == [OF_FIRST]
    assert await worker.pool.fetchval("SELECT count(*) FROM served_versions") == 0


async def test_a_version_that_cannot_be_put_in_place_is_not_served(
    store: Store, database: str, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(rebuild.CONNECTION_SETTINGS, "lock_timeout", "100ms")
    counters = await some_history(store)
    await worker.catch_up()
    await upgrade(worker)

    async with worker.pool.acquire() as writer, writer.transaction():
        await writer.execute("LOCK TABLE counts_2 IN ROW EXCLUSIVE MODE")
        with pytest.raises(SystemExit, match="the read models are as they were, try again"):
            await fill(database, store)

    reading = Reading(worker.pool, counters)
    await reading.read()
    assert reading.statements == [OF_FIRST]
    await fill(database, store)
    await reading.read()
    assert reading.statements == [OF_FIRST, OF_SECOND]
    assert reading.missed == 0


async def test_a_rebuild_of_one_version_leaves_the_others_as_they_are(
    store: Store, database: str, worker: Worker
) -> None:
    [counter, *_] = await some_history(store)
    await worker.catch_up()
    await upgrade(worker)
    await worker.pool.execute("UPDATE counts SET number = -1 WHERE counter_id = $1", counter)

    await fill(database, store)

    assert await worker.pool.fetchval("SELECT min(number) FROM counts") == -1


async def test_neither_a_check_nor_a_rebuild_of_all_serves_a_version(
    store: Store,
    database: str,
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(rebuild, "CATCH_UP_SECONDS_MAX", 0)
    await some_history(store)
    await worker.catch_up()
    await upgrade(worker)

    with pytest.raises(SystemExit, match="1"):
        await rebuild.run(database, [store], MODELS, only_check=True, version=2)

    assert await worker.pool.fetchval("SELECT count(*) FROM served_versions") == 0
    await rebuild.run(database, [store], MODELS, only_check=False)
    capsys.readouterr()
    await rebuild.run(database, [store], MODELS, only_check=True, version=2)
    assert "is served" not in capsys.readouterr().out


async def test_both_versions_keep_the_versions_of_what_they_have_taken(
    store: Store, database: str, worker: Worker
) -> None:
    """The worker delivers what a rebuild has taken: in the new version, too, twice is once."""
    await some_history(store)
    await upgrade(worker)
    await fill(database, store)
    await worker.catch_up()

    await rebuild.run(database, [store], MODELS, only_check=True)


async def test_a_version_that_a_worker_did_not_fill_is_filled_again_before_it_is_served(
    store: Store, database: str, worker: Worker
) -> None:
    """The release is taken back for a while: its version lacks what came in that time."""
    [counter, *_] = await some_history(store)
    await worker.catch_up()
    await upgrade(worker)
    await fill(database, store)
    before = Worker(worker.pool, READ_MODELS)
    before.published = worker.published
    await versions.forget_unfilled(worker.pool, READ_MODELS)
    await add(store, counter, (await store.read(counter))[-1].version + 1)
    await before.catch_up()
    await versions.forget_unfilled(worker.pool, MODELS)
    reading = Reading(worker.pool, [counter])

    await reading.read()
    with pytest.raises(SystemExit, match="version 2 of counts was not served before"):
        await serve(database, 2)
    await fill(database, store)
    await reading.read()

    assert reading.statements == [OF_FIRST, OF_SECOND]
    assert reading.missed == 0


async def test_a_version_that_all_workers_fill_stays_what_it_was(
    store: Store, database: str, worker: Worker
) -> None:
    """Until a release has no version 1 any more: it is not the first one again when it is back."""
    counters = await some_history(store)
    await worker.catch_up()
    await upgrade(worker)
    await fill(database, store)
    reading = Reading(worker.pool, counters)

    await versions.forget_unfilled(worker.pool, MODELS)
    await reading.read()
    await serve(database, 1)
    await reading.read()
    await versions.forget_unfilled(worker.pool, [SECOND])
    await serve(database, 2)
    with pytest.raises(SystemExit, match="version 1 of counts was not served before"):
        await serve(database, 1)

    assert reading.statements == [OF_SECOND, OF_FIRST]


async def test_a_release_reads_the_last_version_that_was_served_of_those_that_it_has(
    worker: Worker,
) -> None:
    async def read(*known: int) -> int:
        return await versions.choose(worker.pool, "counts", {each: each for each in known})

    assert (await read(1, 2), await read(2, 3)) == (1, 2), "none was noted"
    for version in (1, 3):
        await worker.pool.execute(versions.NOTE, "counts", version)
    await worker.pool.execute(versions.NOTE, "sums", 2)

    assert await read(1, 2, 3) == 3
    assert await read(1, 2) == 1, "2 was never served"
    assert await read(2) == 2


async def test_an_error_of_an_operator_is_one_line(store: Store, database: str) -> None:
    with pytest.raises(SystemExit, match=r"run the command `migrate` first: .*counts_2"):
        await fill(database, store)
    with pytest.raises(SystemExit, match=r"no read model that has several .* counts 1 and 2, sums"):
        await rebuild.run(database, [store], MODELS, only_check=False, version=3)
    with pytest.raises(SystemExit, match="no read model that has several"):
        await rebuild.run(database, [store], MODELS, only_check=False, name="counts")


SUMS_2 = ReadModel(name="sums", version=2, topic=TOPIC, types=(), project=count_changes)


@pytest.mark.parametrize(
    ("models", "version", "name", "error"),
    [
        (MODELS, 3, None, "no read model that has several .* there are counts 1 and 2, sums 1"),
        (MODELS, 1, "sums", "no read model that has several"),
        (MODELS, None, "counts", "no read model that has several"),
        (READ_MODELS, 1, None, "no read model that has several"),
        ((), 1, None, "there are none"),
        ((*MODELS, SUMS_2), 2, None, "several .* version 2: add model=counts or model=sums"),
    ],
    ids=["unknown", "only version", "no version", "no versions", "no read model", "two"],
)
def test_what_is_not_one_version_of_several_is_refused(
    models: Sequence[ReadModel], version: int | None, name: str | None, error: str
) -> None:
    with pytest.raises(versions.UnknownVersion, match=error):
        versions.select(models, version, name)


def test_a_version_belongs_to_the_read_model_that_has_several() -> None:
    assert versions.select(MODELS, 1) is READ_MODELS[0]
    assert versions.select((*MODELS, SUMS_2), 2, "sums") is SUMS_2
