"""Waiting for a stream: woken when it grows, let go at the deadline."""

import asyncio
from collections.abc import Iterable
from copy import copy
from uuid import UUID

import pytest

from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.stream_watch import StreamWatch
from shared.messaging.messages import RecordedEvent
from shared.runtime.identifiers import new_id
from test_support.counter.counter import Counted, counted, some_metadata


async def test_a_waiter_is_woken_when_the_stream_grows(store: EventStore[Counted]) -> None:
    counter, watch = new_id(), StreamWatch(store)
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())
    waiting = asyncio.create_task(watch.wait_for_newer(counter, 1, 30))
    await asyncio.sleep(0.05)
    assert not waiting.done()

    await store.append(counter, 1, counted(counter, 2), metadata=some_metadata())

    assert [(each.version, each.event.number) for each in await waiting] == [(2, 2)]


async def test_each_waiter_gets_what_is_newer_than_its_own_version(
    store: EventStore[Counted],
) -> None:
    counter, watch = new_id(), StreamWatch(store)
    await store.append(counter, 0, counted(counter, 1, 2, 3), metadata=some_metadata())

    found = await asyncio.gather(*[watch.wait_for_newer(counter, n, 30) for n in (0, 2, 1)])

    assert [[each.version for each in events] for events in found] == [[1, 2, 3], [3], [2, 3]]


async def test_a_waiter_is_let_go_at_the_deadline(store: EventStore[Counted]) -> None:
    assert not await StreamWatch(store).wait_for_newer(new_id(), 0, 0.05)


async def test_waiters_are_let_go_when_the_watch_is_closed(store: EventStore[Counted]) -> None:
    watch = StreamWatch(store)
    waiting = asyncio.create_task(watch.wait_for_newer(new_id(), 0, 30))
    await asyncio.sleep(0.05)

    watch.close()

    assert not await waiting
    assert not await watch.wait_for_newer(new_id(), 0, 30)


async def test_a_waiter_is_woken_although_the_database_was_away(
    store: EventStore[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    counter, watch = new_id(), StreamWatch(store)
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())
    wake, failures = watch._wake, iter([ConnectionError("away")])

    async def failing_once() -> None:
        for error in failures:
            raise error
        await wake()

    monkeypatch.setattr(watch, "_wake", failing_once)

    assert await watch.wait_for_newer(counter, 0, 30)


async def test_a_stream_that_has_grown_already_needs_no_wait(store: EventStore[Counted]) -> None:
    counter = new_id()
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())

    assert await StreamWatch(store).wait_for_newer(counter, 0, 30)


async def test_readers_share_a_query(
    store: EventStore[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, watch = new_id(), new_id(), StreamWatch(store)
    await store.append(first, 0, counted(first, 1, 2), metadata=some_metadata())
    await store.append(second, 0, counted(second, 3), metadata=some_metadata())
    read_many, queries = store.read_many, list[int]()

    async def counting(stream_ids: Iterable[UUID]) -> list[RecordedEvent[Counted]]:
        queries.append(len(list(stream_ids)))
        return await read_many(stream_ids)

    monkeypatch.setattr(store, "read_many", counting)

    found = await asyncio.gather(*[watch.read(each) for each in (first, second, first, new_id())])

    assert [[each.event.number for each in events] for events in found] == [[1, 2], [3], [1, 2], []]
    assert queries == [3]


async def test_a_stream_is_read_while_others_wait(store: EventStore[Counted]) -> None:
    counter, watch = new_id(), StreamWatch(store)
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())
    waiting = asyncio.create_task(watch.wait_for_newer(new_id(), 0, 30))
    await asyncio.sleep(0.05)

    found = await asyncio.wait_for(watch.read(counter), 5)

    assert [each.version for each in found] == [1]
    watch.close()
    await waiting


async def test_a_stream_is_read_after_the_watch_is_closed(store: EventStore[Counted]) -> None:
    counter, watch = new_id(), StreamWatch(store)
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())

    watch.close()

    assert [each.version for each in await watch.read(counter)] == [1]


async def test_a_stream_of_another_category_has_no_events(
    store: EventStore[Counted],
) -> None:
    counter, other = new_id(), copy(store)
    other.category = "another"
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())

    assert not await StreamWatch(other).read(counter)


async def test_each_reader_gets_the_error_and_the_next_one_is_answered(
    store: EventStore[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    counter, watch = new_id(), StreamWatch(store)
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())
    with monkeypatch.context() as patched:

        async def failing(stream_ids: object) -> list[RecordedEvent[Counted]]:
            raise ConnectionError("away")

        patched.setattr(store, "read_many", failing)
        readers = [watch.read(counter) for _ in range(2)]
        failures = await asyncio.gather(*readers, return_exceptions=True)

    assert [type(each) for each in failures] == [ConnectionError] * 2
    assert await watch.read(counter)
