"""The cursor finds what commits late and keeps each stream's order; simpler cursors do not."""

import asyncpg
import pytest

from shared.outbox import outbox
from shared.outbox.outbox import OutboxRow, RelayCheckpoint, Snapshot

INSERT = """
    INSERT INTO outbox (topic, partition, key, value, headers, recorded_at)
    VALUES ('users.v1', 0, $1, $2, '\\x00', now())
"""
ROWS_MAX = 10


class Reader:
    """Polls again and again, as the relay does; `seen` is what it would have published."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection
        self.published = Snapshot()
        self.seen: list[bytes] = []

    async def poll(self) -> list[bytes]:
        snapshot, rows = await outbox.poll(self.connection, self.published, ROWS_MAX)
        if rows is None:
            rows = await self.pages(snapshot)
        self.published = Snapshot.parse(snapshot)
        new = [row.value for row in rows]
        self.seen += new
        return new

    async def pages(self, target: str) -> list[OutboxRow]:
        floor = await outbox.read_window_floor(self.connection, self.published)
        rows: list[OutboxRow] = []
        while page := await outbox.read_page(
            self.connection, RelayCheckpoint(self.published, target, floor), ROWS_MAX
        ):
            rows += page
            floor = page[-1].position
        return rows


@pytest.fixture
async def connections(database: str):  # type: ignore[no-untyped-def]
    opened = [await asyncpg.connect(database) for _ in range(3)]
    yield opened
    for connection in opened:
        await connection.close()


Connections = list[asyncpg.Connection]


async def add(connection: asyncpg.Connection, value: bytes, key: bytes = b"k") -> None:
    await connection.execute(INSERT, key, value)


async def test_nothing_new_is_no_row(connections: Connections) -> None:
    assert await Reader(connections[0]).poll() == []


async def test_a_row_is_seen_once(connections: Connections) -> None:
    reader = Reader(connections[0])
    await add(connections[1], b"a")

    assert await reader.poll() == [b"a"]
    assert await reader.poll() == []


async def test_a_row_that_commits_late_is_not_lost(connections: Connections) -> None:
    """The negative control is the next test: `position > last` does lose it."""
    reader, slow, quick = Reader(connections[0]), connections[1], connections[2]
    transaction = slow.transaction()
    await transaction.start()
    await add(slow, b"late")
    await add(quick, b"early")

    assert await reader.poll() == [b"early"]
    await transaction.commit()
    assert await reader.poll() == [b"late"]


async def test_a_cursor_on_the_position_loses_what_commits_late(connections: Connections) -> None:
    reader, slow, quick = connections
    transaction = slow.transaction()
    await transaction.start()
    await add(slow, b"late")
    await add(quick, b"early")

    after = "SELECT position, value FROM outbox WHERE position > $1 ORDER BY position"
    [first] = await reader.fetch(after, 0)
    await transaction.commit()

    assert first["value"] == b"early"
    assert await reader.fetch(after, first["position"]) == []


async def test_an_early_transaction_id_does_not_reorder_a_stream(connections: Connections) -> None:
    """Version 2 is written by the transaction with the smaller id, after it read version 1."""
    reader, early, other = Reader(connections[0]), connections[1], connections[2]
    transaction = early.transaction()
    await transaction.start()
    await early.execute("SELECT pg_current_xact_id()")
    await add(other, b"version 1")
    await add(early, b"version 2")
    await transaction.commit()

    assert await reader.poll() == [b"version 1", b"version 2"]
    by_transaction = await other.fetch("SELECT value FROM outbox ORDER BY transaction_id, position")
    assert [row["value"] for row in by_transaction] == [b"version 2", b"version 1"]


async def test_a_slow_writer_delays_no_other_row(connections: Connections) -> None:
    reader, slow, quick = Reader(connections[0]), connections[1], connections[2]
    transaction = slow.transaction()
    await transaction.start()
    await add(slow, b"slow")
    for number in range(3):
        await add(quick, b"%d" % number)
        assert await reader.poll() == [b"%d" % number]
    await transaction.commit()

    assert await reader.poll() == [b"slow"]


async def test_a_rolled_back_row_is_never_seen(connections: Connections) -> None:
    reader, writer = Reader(connections[0]), connections[1]
    transaction = writer.transaction()
    await transaction.start()
    await add(writer, b"never")
    await reader.poll()
    await transaction.rollback()

    await reader.poll()
    assert reader.seen == []


async def test_a_large_window_is_paged_in_the_order_of_positions(connections: Connections) -> None:
    reader, early, other = Reader(connections[0]), connections[1], connections[2]
    transaction = early.transaction()
    await transaction.start()
    await early.execute("SELECT pg_current_xact_id()")
    values = [b"%03d" % number for number in range(5 * ROWS_MAX)]
    for value in values[: 3 * ROWS_MAX]:
        await add(other, value)
    for value in values[3 * ROWS_MAX :]:
        await add(early, value)
    await transaction.commit()

    assert await reader.poll() == values
    assert await reader.poll() == []


async def test_rows_of_the_past_are_not_paged_again(connections: Connections) -> None:
    reader, writer = Reader(connections[0]), connections[1]
    for number in range(2 * ROWS_MAX):
        await add(writer, b"old %d" % number)
    await reader.poll()
    new = [b"new %d" % number for number in range(2 * ROWS_MAX)]
    for value in new:
        await add(writer, value)

    assert await reader.poll() == new
