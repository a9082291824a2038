"""Histories of counters, and a worker that takes them into read models."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from uuid import UUID

import asyncpg

from shared.eventsourcing.event_store import EventStore
from shared.inbox.consumer import Consumer, merge_reactions
from shared.messaging.records import IncomingRecord
from shared.messaging.wire import OutgoingRecord
from shared.outbox import outbox
from shared.outbox.outbox import Snapshot
from shared.projections.read_models import ReadModel
from shared.runtime.identifiers import new_id
from shared.runtime.relay_notifier import RelayNotifier
from test_support.counter.counted_records import as_read
from test_support.counter.counter import Counted, counted, some_metadata

ROWS_MAX = 100_000
WRITE_SECONDS = 0.02
"""Between two events of a stream that is written to all the time."""

Store = EventStore[Counted]
Act = Callable[[], Awaitable[None]]


class Worker:
    """Takes what a relay would have sent into the live tables, over connections that it keeps."""

    def __init__(self, pool: asyncpg.Pool, models: Sequence[ReadModel]) -> None:
        self.published = Snapshot()
        self.pool = pool
        self.follow(models)

    def follow(self, models: Sequence[ReadModel]) -> None:
        """Take what comes from now on into these, as after a release that has others."""
        reactions = merge_reactions([], models)
        self.consumer = Consumer(
            "users-worker", self.pool, reactions, self.refuse, RelayNotifier(None)
        )

    async def refuse(self, letters: Sequence[OutgoingRecord]) -> None:
        raise AssertionError(letters)

    async def catch_up(self) -> None:
        records = await self.new_records()
        for start in range(0, len(records), 100):
            await self.consumer.take(records[start : start + 100])

    async def new_records(self) -> list[IncomingRecord]:
        async with self.pool.acquire() as connection:
            snapshot, rows = await outbox.poll(connection, self.published, ROWS_MAX)  # type: ignore[arg-type]
        self.published = Snapshot.parse(snapshot)
        return [as_read(row) for row in rows or ()]


async def add(store: Store, counter: UUID, start: int, count: int = 1) -> None:
    numbers = range(start, start + count)
    await store.append(counter, start - 1, counted(counter, *numbers), metadata=some_metadata())


async def some_history(store: Store, seed: int = 1) -> list[UUID]:
    """Streams whose events are mixed."""
    choice = random.Random(seed)
    counters = [new_id() for _ in range(7)]
    versions = dict.fromkeys(counters, 0)
    for _ in range(60):
        counter, count = choice.choice(counters), choice.randint(1, 3)
        await add(store, counter, versions[counter] + 1, count)
        versions[counter] += count
    return counters


@asynccontextmanager
async def kept_busy(
    store: Store, worker: Worker, counters: Sequence[UUID], *others: Act
) -> AsyncIterator[None]:
    """Write to all streams meanwhile, let the worker follow, and repeat what others do."""
    versions = {counter: len(await store.read(counter)) for counter in counters}
    is_over = asyncio.Event()

    async def write(counter: UUID) -> None:
        await add(store, counter, versions[counter] + 1, 2)
        versions[counter] += 2
        await asyncio.sleep(WRITE_SECONDS)

    async def follow() -> None:
        await worker.catch_up()
        await asyncio.sleep(WRITE_SECONDS)

    async def repeat(act: Act) -> None:
        while not is_over.is_set():
            await act()

    acts: list[Act] = [*(partial(write, counter) for counter in counters), follow, *others]
    async with asyncio.TaskGroup() as tasks:
        for act in acts:
            tasks.create_task(repeat(act))
        try:
            yield
        finally:
            is_over.set()
