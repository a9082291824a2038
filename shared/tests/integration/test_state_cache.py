"""A long stream is folded once; whatever happens to it later, its state is that of its events."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg
import pytest

from shared.eventsourcing import handler, state_cache
from shared.eventsourcing.decider import Decider
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.handler import Outcome, load, load_many
from shared.eventsourcing.state_cache import FoldedStream, StateCache
from shared.runtime.identifiers import new_id
from test_support.counter.counter import Counted, counted, some_metadata, store_of

LONG = 10


class Sum:
    """A decider of the sum of a counter's numbers, which counts the events that it folds."""

    def __init__(self) -> None:
        self.folded = 0
        self.decider: Decider[None, int, Counted] = Decider(
            initial=0, decide=self.decide, evolve=self.evolve
        )

    def decide(self, command: None, state: int) -> Sequence[Counted]:
        return []

    def evolve(self, state: int, event: Counted) -> int:
        self.folded += 1
        return state + event.number

    async def load(self, store: EventStore[Counted], counter: UUID) -> tuple[int, int]:
        outcome = await load(store, self.decider, counter)
        return outcome.state, outcome.version


@pytest.fixture(autouse=True)
def _short_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_cache, "STREAM_EVENTS_MIN", LONG)


async def add(store: EventStore[Counted], counter: UUID, version: int, *numbers: int) -> None:
    await store.append(counter, version, counted(counter, *numbers), metadata=some_metadata())


async def test_of_a_long_stream_only_new_events_are_folded(store: EventStore[Counted]) -> None:
    counter, sums = new_id(), Sum()
    await add(store, counter, 0, *[1] * LONG)

    assert await sums.load(store, counter) == (LONG, LONG)
    assert await sums.load(store, counter) == (LONG, LONG)
    assert sums.folded == LONG
    await add(store, counter, LONG, 5, 7)
    assert await sums.load(store, counter) == (LONG + 12, LONG + 2)
    assert sums.folded == LONG + 2


async def test_a_short_stream_is_folded_each_time(store: EventStore[Counted]) -> None:
    counter, sums = new_id(), Sum()
    await add(store, counter, 0, *[1] * (LONG - 1))

    for _ in range(2):
        assert await sums.load(store, counter) == (LONG - 1, LONG - 1)

    assert sums.folded == 2 * (LONG - 1)


async def test_events_of_another_process_are_folded_on_top(
    store: EventStore[Counted], pool: asyncpg.Pool
) -> None:
    counter, sums = new_id(), Sum()
    await add(store, counter, 0, *[1] * LONG)
    await sums.load(store, counter)

    await add(store_of(pool), counter, LONG, 5)

    assert await sums.load(store, counter) == (LONG + 5, LONG + 1)


async def test_a_very_long_stream_is_folded_page_by_page(
    store: EventStore[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "EVENTS_PER_PAGE", 4)
    for length in range(1, LONG + 5):
        counter, sums = new_id(), Sum()
        await add(store, counter, 0, *range(length))

        assert await sums.load(store, counter) == (sum(range(length)), length)
        assert sums.folded == length


async def test_a_load_that_failed_is_continued(
    store: EventStore[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a stream that takes longer than a statement may would never be folded."""
    monkeypatch.setattr(handler, "EVENTS_PER_PAGE", LONG)
    counter, sums, read = new_id(), Sum(), store.read
    await add(store, counter, 0, *[1] * 3 * LONG)

    async def read_first_page(stream_id: UUID, version: int, count: int) -> object:
        if version > 1:
            raise TimeoutError
        return await read(stream_id, version, count)

    monkeypatch.setattr(store, "read", read_first_page)
    with pytest.raises(TimeoutError):
        await sums.load(store, counter)
    monkeypatch.setattr(store, "read", read)

    assert await sums.load(store, counter) == (3 * LONG, 3 * LONG)
    assert sums.folded == 3 * LONG


async def load_what_is_rolled_back(
    store: EventStore[Counted], pool: asyncpg.Pool, counter: UUID, sums: Sum
) -> None:
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        bound = store.within(connection)
        await add(bound, counter, LONG, 5)
        assert await sums.load(bound, counter) == (LONG + 5, LONG + 1)
        await transaction.rollback()


async def test_a_state_that_was_rolled_back_is_forgotten(
    store: EventStore[Counted], pool: asyncpg.Pool
) -> None:
    counter, sums = new_id(), Sum()
    await add(store, counter, 0, *[1] * LONG)
    await load_what_is_rolled_back(store, pool, counter, sums)

    assert await sums.load(store, counter) == (LONG, LONG)


async def test_a_state_that_was_rolled_back_is_forgotten_also_after_other_events(
    store: EventStore[Counted], pool: asyncpg.Pool
) -> None:
    """Their versions are those that the lost events had."""
    counter, sums = new_id(), Sum()
    await add(store, counter, 0, *[1] * LONG)
    await load_what_is_rolled_back(store, pool, counter, sums)
    await add(store, counter, LONG, 7, 9)

    assert await sums.load(store, counter) == (LONG + 16, LONG + 2)


async def test_several_streams_are_loaded_as_one_by_one(
    store: EventStore[Counted], pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their length, and whatever of them is cached, or was rolled back."""
    monkeypatch.setattr(handler, "EVENTS_PER_PAGE", 2 * LONG)
    lengths = dict(zip([new_id() for _ in range(4)], [0, 1, LONG, 3 * LONG], strict=True))
    for counter, length in lengths.items():
        await add(store, counter, 0, *[1] * length)
    sums, expected = Sum(), {each: Outcome(state=n, version=n) for each, n in lengths.items()}

    assert await load_many(store, sums.decider, lengths) == expected
    assert await load_many(store, sums.decider, lengths) == expected
    assert sums.folded == sum(lengths.values()) + 1, "a long stream is folded again"
    for counter in (each for each, length in lengths.items() if length == LONG):
        await load_what_is_rolled_back(store, pool, counter, sums)
    assert await load_many(store, sums.decider, lengths) == expected


def test_the_states_that_were_used_first_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_cache, "VALUES_MAX", 30)
    cache, streams = StateCache(), [new_id() for _ in range(4)]
    folded = FoldedStream(state=0, version=LONG, event_id=new_id(), values=10)

    for used in (0, 1, 2, 0, 3):
        cache.keep(streams[used], folded)

    assert [cache.find(each) is not None for each in streams] == [True, False, True, True]


def test_the_length_of_a_stream_evicts_none() -> None:
    """Or a user with very many refused orders would be folded again by each batch."""
    cache, streams = StateCache(), [new_id() for _ in range(4)]
    folded = FoldedStream(state=0, version=10 * state_cache.VALUES_MAX, event_id=new_id(), values=1)

    for each in streams:
        cache.keep(each, folded)

    assert [cache.find(each) for each in streams] == [folded] * 4
