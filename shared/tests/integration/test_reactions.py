"""The commands of a batch are decided in their order and recorded at once, on what is true."""

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import pytest
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, TraceFlags

from shared.eventsourcing import handler, locked_streams, state_cache
from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import VersionConflict
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.handler import CausedCommand, react
from shared.eventsourcing.recorded import Recorded
from shared.messaging import wire
from shared.runtime.identifiers import new_id
from test_support.counter.counter import Counted, counted, publish, some_metadata, store_of
from test_support.waits import HANGS_AFTER_SECONDS

UNLOCKED = locked_streams.LOCK.replace("FOR NO KEY UPDATE", "")


@dataclass(frozen=True, slots=True)
class Count:
    """Add the next numbers."""

    counter_id: UUID
    times: int = 1


def decide(command: Count, last: int) -> Sequence[Counted]:
    return counted(command.counter_id, *range(last + 1, last + 1 + command.times))


def evolve(last: int, event: Counted) -> int:
    return event.number


COUNTER: Decider[Count, int, Counted] = Decider(initial=0, decide=decide, evolve=evolve)


def caused(command: Count) -> CausedCommand[Count]:
    return CausedCommand(
        stream_id=command.counter_id,
        command=command,
        metadata=some_metadata(),
        span=INVALID_SPAN,
    )


async def take(
    store: EventStore[Counted], pool: asyncpg.Pool, *commands: Count
) -> Sequence[Recorded]:
    async with pool.acquire() as connection, connection.transaction():
        return await react(store, COUNTER, connection, [caused(each) for each in commands])


async def numbers(store: EventStore[Counted], counter: UUID) -> list[tuple[int, int]]:
    return [(each.version, each.event.number) for each in await store.read(counter)]


async def previous_versions(pool: asyncpg.Pool, counter: UUID) -> list[bytes]:
    """As the records of a counter name them, in the order in which they leave."""
    rows = await pool.fetch(
        "SELECT headers FROM outbox WHERE key = $1 ORDER BY position", str(counter).encode()
    )
    return [dict(wire.unpack(row["headers"]))["ce_previousversion"] for row in rows]


async def test_commands_on_many_streams_are_recorded_in_their_order(pool: asyncpg.Pool) -> None:
    store, known, new = store_of(pool), new_id(), new_id()
    await store.append(known, 0, counted(known, 1, 2), metadata=some_metadata())

    assert await take(store, pool, Count(new), Count(known, 2), Count(new, 2), Count(known))

    assert await numbers(store, known) == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]
    assert await numbers(store, new) == [(1, 1), (2, 2), (3, 3)]
    assert await previous_versions(pool, known) == [b"0", b"1", b"2", b"3", b"4"]
    assert await previous_versions(pool, new) == [b"0", b"1", b"2"]
    await store.append(known, 5, counted(known, 6), metadata=some_metadata())
    assert (await previous_versions(pool, known))[-1] == b"5"


async def test_events_that_stay_inside_are_no_previous_version(pool: asyncpg.Pool) -> None:
    store = store_of(pool, publish=lambda event: publish(event) if event.number % 2 else None)
    counter = new_id()

    await take(store, pool, Count(counter, 2))
    await take(store, pool, Count(counter, 2), Count(counter))

    assert await previous_versions(pool, counter) == [b"0", b"1", b"3"]


async def test_commands_without_effect_record_nothing(pool: asyncpg.Pool) -> None:
    store, known, new = store_of(pool), new_id(), new_id()
    await store.append(known, 0, counted(known, 1), metadata=some_metadata())

    assert not await take(store, pool, Count(known, 0), Count(new, 0))

    assert await numbers(store, known) == [(1, 1)]
    assert await numbers(store, new) == []


async def test_an_event_has_the_metadata_and_the_trace_of_its_own_cause(pool: asyncpg.Pool) -> None:
    store, counter = store_of(pool), new_id()
    commands = []
    for trace_id in (7, 8):
        context = SpanContext(trace_id, 1, is_remote=False, trace_flags=TraceFlags(0))
        commands.append(
            CausedCommand(
                stream_id=counter,
                command=Count(counter),
                metadata=some_metadata(),
                span=NonRecordingSpan(context),
            )
        )

    async with pool.acquire() as connection, connection.transaction():
        await react(store, COUNTER, connection, commands)

    rows = await pool.fetch("SELECT headers FROM outbox ORDER BY position")
    headers = [dict(wire.unpack(row["headers"])) for row in rows]
    assert [h["ce_causationid"] for h in headers] == [
        str(each.metadata.causation_id).encode() for each in commands
    ]
    assert [h["traceparent"].split(b"-")[1] for h in headers] == [b"%032x" % 7, b"%032x" % 8]


@asynccontextmanager
async def begun_batch(store: EventStore[Counted], pool: asyncpg.Pool, command: Count):  # type: ignore[no-untyped-def]
    """A batch that has decided inside, and commits afterwards."""
    async with pool.acquire() as connection, connection.transaction():
        await react(store, COUNTER, connection, [caused(command)])
        yield


async def test_another_writer_waits_for_the_batch_and_loses(pool: asyncpg.Pool) -> None:
    store, counter = store_of(pool), new_id()
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())

    async with begun_batch(store, pool, Count(counter)):
        other = store.append(counter, 1, counted(counter, 9), metadata=some_metadata())
        writing = asyncio.create_task(other)
        await asyncio.wait([writing], timeout=0.1)
        assert not writing.done()

    with pytest.raises(VersionConflict):
        await asyncio.wait_for(writing, HANGS_AFTER_SECONDS)
    assert await numbers(store, counter) == [(1, 1), (2, 2)]


async def take_late(
    store: EventStore[Counted], pool: asyncpg.Pool, command: Count, *, version: int, number: int
) -> None:
    """Take a command on whose stream another writer appends a number after it was read."""
    load_locked, counter = handler.load_locked, command.counter_id

    async def load_and_be_late(streams, decider):  # type: ignore[no-untyped-def]
        loaded = await load_locked(streams, decider)
        events = counted(counter, number)
        await store_of(pool).append(counter, version, events, metadata=some_metadata())
        return loaded

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handler, "load_locked", load_and_be_late)
        await take(store, pool, command)


async def test_without_the_lock_the_batch_loses_the_race(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of the lock. The version check still keeps the stream right."""
    store, counter = store_of(pool), new_id()
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())
    monkeypatch.setattr(locked_streams, "LOCK", UNLOCKED)

    with pytest.raises(VersionConflict):
        await take_late(store, pool, Count(counter), version=1, number=2)

    assert await numbers(store, counter) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("times", [0, 1])
async def test_a_stream_that_another_writer_begins_meanwhile_is_a_conflict(
    pool: asyncpg.Pool, times: int
) -> None:
    store, counter = store_of(pool), new_id()

    with pytest.raises(VersionConflict):
        await take_late(store, pool, Count(counter, times), version=0, number=9)

    assert await numbers(store, counter) == [(1, 9)]
    assert await take(store, pool, Count(counter)), "the next attempt"
    assert await numbers(store, counter) == [(1, 9), (2, 10)]


@pytest.mark.parametrize("others", [(40, 50), (40, 50, 60), (40, 50, 60, 70)])
async def test_a_state_of_a_batch_that_was_rolled_back_is_not_decided_on(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch, others: tuple[int, ...]
) -> None:
    """Also when the events of others have the versions that the lost events had."""
    monkeypatch.setattr(state_cache, "STREAM_EVENTS_MIN", 1)
    store, counter, other = store_of(pool), new_id(), new_id()
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await react(store, COUNTER, connection, [caused(Count(counter, 3)), caused(Count(other))])
        await transaction.rollback()
    await store.append(counter, 1, counted(counter, *others), metadata=some_metadata())

    await take(store, pool, Count(counter), Count(other))

    expected = [1, *others, others[-1] + 1]
    assert await numbers(store, counter) == [*enumerate(expected, start=1)]
    assert await numbers(store, other) == [(1, 1)]


async def test_very_long_streams_are_read_page_by_page(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "EVENTS_PER_PAGE", 4)
    counters = [new_id() for _ in range(10)]
    for length, counter in enumerate(counters):
        events = counted(counter, *range(1, length + 1))
        await store_of(pool).append(counter, 0, events, metadata=some_metadata())
    store = store_of(pool)

    await take(store, pool, *[Count(counter) for counter in counters])

    for length, counter in enumerate(counters):
        assert (await numbers(store, counter))[-1] == (length + 1, length + 1)
