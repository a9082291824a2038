"""What waits in an outbox is seen without any relay, and so is what is parked."""

import asyncpg
import pytest

from shared.inbox import parked
from shared.outbox import backlog
from shared.runtime.identifiers import new_id
from test_support.counter.counted_records import record, records
from test_support.counter.desk import NAME, Desk

INSERT = """
    INSERT INTO outbox (topic, partition, key, value, headers, recorded_at)
    VALUES ('users.v1', 0, 'key', 'value', '\\x00', now() - make_interval(secs => $1))
"""
PUBLISH = """
    UPDATE relay
    SET published_xmax = pg_snapshot_xmax(pg_current_snapshot()),
        published_xip = ARRAY(SELECT pg_snapshot_xip(pg_current_snapshot()))
"""
OPEN_WINDOW = "UPDATE relay SET target = pg_current_snapshot(), floor_position = $1"


async def test_an_empty_outbox_has_nothing_that_waits(connection: asyncpg.Connection) -> None:
    found = await backlog.read(connection)

    assert (found.rows, found.seconds, found.is_held, found.beat_seconds) == (0, 0, False, None)


async def test_rows_wait_until_they_are_published_and_the_oldest_tells_how_long(
    connection: asyncpg.Connection,
) -> None:
    await connection.execute(INSERT, 10.0)
    await connection.execute(INSERT, 100.0)

    waiting = await backlog.read(connection)
    await connection.execute(PUBLISH)
    published = await backlog.read(connection)

    assert waiting.rows == 2
    assert 100 <= waiting.seconds < 200
    assert (published.rows, published.seconds) == (0, 0)


async def test_a_row_that_was_committed_late_waits_too(
    connection: asyncpg.Connection, pool: asyncpg.Pool
) -> None:
    """Its transaction was open when the checkpoint was written: only that list shows it."""
    async with pool.acquire() as slow:
        transaction = slow.transaction()
        await transaction.start()
        await slow.execute(INSERT, 0.0)
        await connection.execute(INSERT, 0.0)
        await connection.execute(PUBLISH)

        assert (await backlog.read(connection)).rows == 0
        await transaction.commit()

    assert (await backlog.read(connection)).rows == 1


async def test_what_a_window_has_sent_already_does_not_wait(connection: asyncpg.Connection) -> None:
    """A relay that catches up does not fall behind, though its window stays open for long."""
    sent = await connection.fetchval(f"{INSERT} RETURNING position", 100.0)
    await connection.execute(INSERT, 10.0)

    await connection.execute(OPEN_WINDOW, sent)
    found = await backlog.read(connection)

    assert found.rows == 1
    assert 10 <= found.seconds < 100


async def test_a_clock_that_is_ahead_makes_no_wait_negative(connection: asyncpg.Connection) -> None:
    await connection.execute(INSERT, -3_600.0)

    found = await backlog.read(connection)

    assert (found.rows, found.seconds) == (1, 0)


async def test_more_rows_than_are_counted_are_as_many_as_are_counted(
    connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "ROWS_MAX", 3)
    for _ in range(5):
        await connection.execute(INSERT, 0.0)

    assert (await backlog.read(connection)).rows == 3


async def test_parked_streams_count_by_their_consumer(
    desk: Desk, connection: asyncpg.Connection
) -> None:
    assert await parked.count_streams(connection) == {}
    for _ in range(2):
        counter = new_id()
        await desk.consumer.take([record(counter, 1, value=b"garbage"), *records(counter, 2)])

    found = await parked.count_streams(connection)

    assert {name: each.streams for name, each in found.items()} == {NAME: 2}
    assert 0 <= found[NAME].seconds < 100
