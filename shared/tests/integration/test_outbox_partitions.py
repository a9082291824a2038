"""The outbox is kept small by dropping partitions, and never one with a row that has to go out."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from shared.outbox import outbox
from shared.outbox.outbox import Snapshot
from shared.runtime import postgres
from test_support.waits import HANGS_AFTER_SECONDS

INSERT = """
    INSERT INTO outbox (topic, partition, key, value, headers, recorded_at)
    VALUES ('users.v1', 0, '', '', '\\x00', $1)
"""
PARTITIONS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'outbox'::regclass"
PUBLISHED = """
    UPDATE relay
    SET published_xmax = pg_snapshot_xmax(now.snapshot),
        published_xip = ARRAY(SELECT pg_snapshot_xip(now.snapshot))
    FROM (SELECT pg_current_snapshot() AS snapshot) AS now
"""
NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


async def partitions(connection: asyncpg.Connection) -> set[str]:
    return {row[0] for row in await connection.fetch(PARTITIONS)} - {"outbox_rest"}


async def rows(connection: asyncpg.Connection) -> int:
    count: int = await connection.fetchval("SELECT count(*) FROM outbox")
    return count


async def place_of(connection: asyncpg.Connection, recorded_at: datetime) -> str:
    place: str = await connection.fetchval(
        INSERT + "RETURNING tableoid::regclass::text", recorded_at
    )
    return place


@pytest.fixture
async def clean(connection: asyncpg.Connection) -> asyncpg.Connection:
    """Without the partitions that the migration made for the hour in which this test runs."""
    for name in await partitions(connection):
        await connection.execute(f"DROP TABLE {name}")
    return connection


async def test_partitions_stand_ready_ahead(clean: asyncpg.Connection) -> None:
    await outbox.keep_partitions(clean, NOW)
    await outbox.keep_partitions(clean, NOW)

    assert await partitions(clean) == {f"outbox_20261121_{hour}" for hour in (12, 13, 14, 15)}
    assert await place_of(clean, NOW) == "outbox_20261121_12"


async def test_a_row_of_an_hour_without_partition_is_kept_too(clean: asyncpg.Connection) -> None:
    """The relay, which makes partitions, may be down for days: writers must not notice."""
    assert await place_of(clean, NOW) == "outbox_rest"
    await outbox.keep_partitions(clean, NOW)

    assert await place_of(clean, NOW + HOUR) == "outbox_20261121_13"
    assert await rows(clean) == 2


async def test_what_ended_and_is_published_is_dropped(clean: asyncpg.Connection) -> None:
    await outbox.keep_partitions(clean, NOW)
    await place_of(clean, NOW)
    await clean.execute(PUBLISHED)
    await place_of(clean, NOW + HOUR)

    await outbox.keep_partitions(clean, NOW + 1.7 * HOUR)

    assert "outbox_20261121_12" not in await partitions(clean)
    assert await rows(clean) == 1


async def test_what_is_not_published_stays_however_old(clean: asyncpg.Connection) -> None:
    await outbox.keep_partitions(clean, NOW)
    await clean.execute(PUBLISHED)
    await place_of(clean, NOW)
    await place_of(clean, NOW - 9 * HOUR)

    await outbox.keep_partitions(clean, NOW + 24 * HOUR)

    assert await rows(clean) == 2


async def test_what_was_in_progress_when_the_checkpoint_was_made_stays(
    clean: asyncpg.Connection, pool: asyncpg.Pool
) -> None:
    await outbox.keep_partitions(clean, NOW)
    async with pool.acquire() as slow, slow.transaction():
        await slow.execute(INSERT, NOW)
        await clean.execute("SELECT pg_current_xact_id()")  # a later one that is over
        await clean.execute(PUBLISHED)
    assert await clean.fetchval("SELECT cardinality(published_xip) FROM relay") == 1

    await outbox.keep_partitions(clean, NOW + 24 * HOUR)

    assert await rows(clean) == 1


async def test_while_a_large_window_is_open_nothing_is_dropped(clean: asyncpg.Connection) -> None:
    await outbox.keep_partitions(clean, NOW)
    await place_of(clean, NOW)
    await clean.execute(PUBLISHED)
    await clean.execute("UPDATE relay SET target = pg_current_snapshot()")

    await outbox.keep_partitions(clean, NOW + 24 * HOUR)

    assert await rows(clean) == 1


async def test_the_rest_is_emptied_when_it_is_published(clean: asyncpg.Connection) -> None:
    await place_of(clean, NOW)
    await clean.execute(PUBLISHED)

    await outbox.keep_partitions(clean, NOW)

    assert await rows(clean) == 0


async def fill_rest(connection: asyncpg.Connection) -> None:
    """Ten published rows, and one that is not."""
    for _ in range(10):
        await place_of(connection, NOW)
    await connection.execute(PUBLISHED)
    await place_of(connection, NOW)


async def test_a_large_rest_is_emptied_in_one_round(
    clean: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After hours without a relay: one statement a minute would not keep up with the writers."""
    monkeypatch.setattr(outbox, "DELETED_ROWS_MAX", 3)
    await fill_rest(clean)

    await outbox.keep_partitions(clean, NOW)

    assert await rows(clean) == 1


async def test_the_time_of_emptying_the_rest_is_bounded(
    clean: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "DELETED_ROWS_MAX", 3)
    monkeypatch.setattr(outbox, "EMPTYING_SECONDS_MAX", 1e-9)
    await fill_rest(clean)

    await outbox.keep_partitions(clean, NOW)

    assert await rows(clean) == 8


async def test_a_rest_that_is_never_published_whole_does_not_grow(
    clean: asyncpg.Connection,
) -> None:
    await place_of(clean, NOW)
    await clean.execute(PUBLISHED)
    await place_of(clean, NOW)

    await outbox.keep_partitions(clean, NOW)

    assert await rows(clean) == 1


async def test_what_takes_too_long_is_given_up(clean: asyncpg.Connection) -> None:
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        await postgres.attempt(clean, 0.05, "SELECT pg_sleep($1)", 2 * HANGS_AFTER_SECONDS)

    await outbox.keep_partitions(clean, NOW)
    assert await place_of(clean, NOW) == "outbox_20261121_12"


async def test_an_open_writer_is_not_waited_for(
    clean: asyncpg.Connection, pool: asyncpg.Pool
) -> None:
    """And it finds its partition again: what cannot be locked is left for the next time."""
    await outbox.keep_partitions(clean, NOW)
    await clean.execute(PUBLISHED)
    async with pool.acquire() as slow, slow.transaction():
        await slow.execute(INSERT, NOW)
        await outbox.keep_partitions(clean, NOW + 24 * HOUR)
    await outbox.poll(clean, Snapshot(), 10)

    assert await rows(clean) == 1
    assert await place_of(clean, NOW) == "outbox_20261121_12"
