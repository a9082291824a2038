"""With a million rows the relay reads by index what is new, whatever the planner knows of them."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

import asyncpg
import pytest

from local_stack.testing import execute, new_database
from shared.outbox import backlog, outbox
from shared.outbox.relay import ROWS_MAX
from shared.runtime import postgres
from test_support.plans import Scan, count_rows, explain, prepare

ROWS = 1_000_000
ROWS_PER_COMMIT = 1_000
HOURS = 6

OLD = 400_001
"""Position of a row whose transaction was open when the checkpoint was written."""
HALF = 500_001
PAGED = 700_000
NEW = ROWS - 2 * ROWS_PER_COMMIT + 1
"""Position of the first row that the checkpoint does not know."""

ROWS_READ_MAX = 2 * ROWS_MAX
"""What a statement may touch, in both branches together."""

CREATE_PARTITIONS = "SELECT create_outbox_partitions(now() - make_interval(hours => $1), $2)"
PARTITIONS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'outbox'::regclass"
INDEXES = """
    SELECT inhrelid::regclass::text
    FROM pg_inherits
    WHERE inhparent = 'outbox_by_transaction'::regclass
"""
TRANSACTION = "SELECT transaction_id::text FROM outbox WHERE position = $1"
SNAPSHOT = "SELECT pg_current_snapshot()::text"
PUBLISHED = "UPDATE relay SET published_xmax = $1::text::xid8"
WINDOW = "UPDATE relay SET target = pg_current_snapshot(), floor_position = $1"
PUBLISHED_BUT = (
    "UPDATE relay SET published_xmax = $1::text::xid8, published_xip = $2::text[]::xid8[]"
)
RELAY_ROWS = 2
"""Its one row, once for the lease and once for the checkpoint."""
PARTITION_OF = "SELECT tableoid::regclass::text FROM outbox WHERE position = $1"
ROWS_READ_ONE_BY_ONE = "SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = $1"

# Small values make a sequential scan look cheap.
FILL = f"""
    DO $$
    BEGIN
        FOR start IN 1..{ROWS} BY {ROWS_PER_COMMIT} LOOP
            INSERT INTO outbox (topic, partition, key, value, headers, recorded_at)
            SELECT 'users.v1', number % 4, 'key', repeat('v', 50)::bytea, repeat('h', 50)::bytea,
                   now() - ({ROWS} - number) * interval '{HOURS - 1} hours' / {ROWS}
            FROM generate_series(start, start + {ROWS_PER_COMMIT - 1}) AS number;
            COMMIT;
        END LOOP;
    END
    $$
"""


@pytest.fixture(scope="module")
def never_analysed(postgres_dsn: str) -> Iterator[str]:
    """A million rows in partitions of several hours, of which the planner knows nothing."""
    with new_database(postgres_dsn) as dsn:
        asyncio.run(fill(dsn))
        yield dsn


@pytest.fixture(scope="module")
def analysed(postgres_dsn: str, never_analysed: str) -> Iterator[str]:
    """The same with statistics."""
    with copy(postgres_dsn, never_analysed) as dsn:
        asyncio.run(execute(dsn, "ANALYZE outbox"))
        yield dsn


@contextmanager
def copy(postgres_dsn: str, original: str) -> Iterator[str]:
    server, _, template = original.rpartition("/")
    name = f"test_{uuid4().hex}"
    asyncio.run(execute(postgres_dsn, f"CREATE DATABASE {name} TEMPLATE {template}"))
    try:
        yield f"{server}/{name}"
    finally:
        asyncio.run(execute(postgres_dsn, f"DROP DATABASE {name} WITH (FORCE)"))


async def fill(dsn: str) -> None:
    await postgres.migrate(dsn, "shared")
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(CREATE_PARTITIONS, HOURS - 1, HOURS)
        for [partition] in await connection.fetch(PARTITIONS):
            await connection.execute(f"ALTER TABLE {partition} SET (autovacuum_enabled = off)")
        await connection.execute("SET synchronous_commit = off")
        await connection.execute(FILL)
    finally:
        await connection.close()


@pytest.fixture(params=["never_analysed", "analysed"])
def dsn(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["force_generic_plan", "force_custom_plan"])
async def connection(dsn: str, request: pytest.FixtureRequest) -> AsyncIterator[asyncpg.Connection]:
    settings = {"jit": "off", "plan_cache_mode": request.param}
    connection = await asyncpg.connect(dsn, server_settings=settings)
    yield connection
    await connection.close()


async def transaction_of(connection: asyncpg.Connection, position: int) -> str:
    transaction_id: str = await connection.fetchval(TRANSACTION, position)
    return transaction_id


async def scans_of(connection: asyncpg.Connection, statement: str, arguments: str) -> list[Scan]:
    """Prepare a statement, run it, and see what it read."""
    return await explain(connection, await prepare(connection, statement), arguments)


def assert_reads_what_is_new(scans: Sequence[Scan]) -> None:
    assert count_rows(scans) <= ROWS_READ_MAX, scans
    # To look into an empty partition is no sequential scan of anything.
    assert not [scan for scan in scans if scan.kind == "Seq Scan" and scan.rows], scans


async def poll_of_new_rows(connection: asyncpg.Connection) -> list[Scan]:
    """A poll after a checkpoint that knows all but the newest rows and one old transaction."""
    new = await transaction_of(connection, NEW)
    old = await transaction_of(connection, OLD)
    return await scans_of(connection, outbox.POLL, f"'{new}', '{{{old}}}', {ROWS_MAX}")


async def test_a_poll_reads_only_new_rows_by_their_transactions(
    connection: asyncpg.Connection,
) -> None:
    scans = await poll_of_new_rows(connection)

    by_transaction = {row[0] for row in await connection.fetch(INDEXES)}
    assert_reads_what_is_new(scans)
    assert count_rows(scans) > 2 * ROWS_PER_COMMIT, "new ones and old ones"
    assert {scan.index for scan in scans if scan.rows} <= by_transaction


async def test_a_poll_that_finds_too_much_stops_at_its_limit(
    connection: asyncpg.Connection,
) -> None:
    half = await transaction_of(connection, HALF)

    scans = await scans_of(connection, outbox.POLL, f"'{half}', '{{}}', {ROWS_MAX}")

    assert_reads_what_is_new(scans)


async def test_a_page_reads_no_more_than_a_page(connection: asyncpg.Connection) -> None:
    half = await transaction_of(connection, HALF)
    old = await transaction_of(connection, OLD)
    now = await connection.fetchval(SNAPSHOT)

    scans = await scans_of(
        connection, outbox.PAGE, f"'{half}', '{{{old}}}', '{now}', {PAGED}, {ROWS_MAX}"
    )

    assert_reads_what_is_new(scans)


async def test_a_page_of_one_partition_reads_the_window_and_nothing_before(
    connection: asyncpg.Connection,
) -> None:
    new = await transaction_of(connection, NEW)
    now = await connection.fetchval(SNAPSHOT)

    scans = await scans_of(
        connection,
        outbox.PAGE_OF_TARGET,
        f"'{new}', '{{}}', '{now}', {NEW - 1}, {ROWS_MAX}, 'users.v1', 1",
    )

    assert_reads_what_is_new(scans)


async def test_the_begin_of_a_window_is_found_without_what_is_published(
    connection: asyncpg.Connection,
) -> None:
    new = await transaction_of(connection, NEW)
    old = await transaction_of(connection, OLD)

    scans = await scans_of(connection, outbox.WINDOW_FLOOR, f"'{new}', '{{{old}}}'")

    assert_reads_what_is_new(scans)


async def rows_read_to_count(
    connection: asyncpg.Connection, published: str, floor: int | None = None
) -> float:
    """How many rows `backlog.BACKLOG` touches after a checkpoint that does not know OLD, or one in
    a window that is published up to `floor`."""
    old = await transaction_of(connection, OLD)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(PUBLISHED_BUT, published, [old])
        if floor is not None:
            await connection.execute(WINDOW, floor)
        return count_rows(await scans_of(connection, backlog.BACKLOG, str(backlog.ROWS_MAX)))
    finally:
        await transaction.rollback()


async def test_what_waits_is_counted_without_what_is_published(
    connection: asyncpg.Connection,
) -> None:
    new = await transaction_of(connection, NEW)

    touched = await rows_read_to_count(connection, new)

    waiting = 3 * ROWS_PER_COMMIT
    assert waiting < touched <= waiting + HOURS + RELAY_ROWS


async def test_no_more_rows_are_counted_than_the_limit(connection: asyncpg.Connection) -> None:
    half = await transaction_of(connection, HALF)

    touched = await rows_read_to_count(connection, half)

    assert touched <= backlog.ROWS_MAX + ROWS_PER_COMMIT + HOURS + RELAY_ROWS


async def test_of_a_window_only_what_is_above_its_floor_is_counted(
    connection: asyncpg.Connection,
) -> None:
    half = await transaction_of(connection, HALF)

    touched = await rows_read_to_count(connection, half, floor=PAGED)
    left = await rows_read_to_count(connection, half, floor=NEW)

    assert touched <= backlog.ROWS_MAX + HOURS + RELAY_ROWS
    waiting = 2 * ROWS_PER_COMMIT
    assert waiting - 1 <= left <= waiting + HOURS + RELAY_ROWS


async def test_without_its_index_counting_would_read_everything(
    connection: asyncpg.Connection,
) -> None:
    """The negative control."""
    new = await transaction_of(connection, NEW)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("DROP INDEX outbox_by_transaction")

    assert await rows_read_to_count(connection, new) > ROWS / 2

    await transaction.rollback()


async def rows_read_to_empty(connection: asyncpg.Connection, position: int, published: str) -> int:
    """How many rows `empty_outbox_partition` reads one after the other, of a row's partition."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(PUBLISHED, published)
        name = await connection.fetchval(PARTITION_OF, position)
        await connection.execute("SELECT empty_outbox_partition($1)", name)
        read: int = await connection.fetchval(ROWS_READ_ONE_BY_ONE, name)
        return read
    finally:
        await transaction.rollback()


@pytest.mark.parametrize("beyond", [0, 1], ids=["all but the newest", "all"])
async def test_what_is_published_of_a_partition_is_not_read_to_empty_it(
    connection: asyncpg.Connection, beyond: int
) -> None:
    published = str(int(await transaction_of(connection, ROWS)) + beyond)

    assert await rows_read_to_empty(connection, ROWS, published) <= 1


async def test_without_its_setting_a_whole_partition_would_be_read(
    connection: asyncpg.Connection,
) -> None:
    """The negative control, of the same with statistics or without."""
    published = str(int(await transaction_of(connection, ROWS)) + 1)
    await connection.execute("ALTER FUNCTION empty_outbox_partition RESET enable_seqscan")
    try:
        assert await rows_read_to_empty(connection, HALF, published) > ROWS / (2 * HOURS)
    finally:
        await connection.execute("ALTER FUNCTION empty_outbox_partition SET enable_seqscan = off")


async def test_without_its_indexes_a_poll_would_read_everything(
    connection: asyncpg.Connection,
) -> None:
    """The negative control: these tests notice it."""
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("DROP INDEX outbox_by_transaction")
    scans = await poll_of_new_rows(connection)
    await transaction.rollback()

    with pytest.raises(AssertionError):
        assert_reads_what_is_new(scans)
