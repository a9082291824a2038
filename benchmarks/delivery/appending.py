"""append: what it costs to store an event with its outbox row, compared with a bare INSERT."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Thread
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import asyncpg
from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore

from benchmarks import pgbench, rows, servers
from benchmarks.delivery.sizes import Size
from benchmarks.goals import ratio_at_least
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.eventsourcing.codec import Codec
from shared.eventsourcing.event_store import EventStore
from shared.messaging.messages import Metadata, PublicEvent
from shared.runtime import postgres
from shared.runtime.identifiers import new_id
from shared.runtime.progress import tell_in_place
from shared.runtime.relay_notifier import RelayNotifier

PEER_THREADS = 8
PLAIN = "INSERT into a plain table"
EVENT = "append"
REPEATABLE = "append with an idempotency key"
PEER = f"pyeventsourcing recorder, {PEER_THREADS} threads, no outbox"

CREATE_PLAIN = """
    CREATE TABLE plain (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        payload bytea NOT NULL
    )
"""
INSERT = "INSERT INTO plain (payload) VALUES ($1)"

SCRIPTS = {
    PLAIN: f"INSERT INTO plain (payload) VALUES ({rows.VALUE_CONSTANT});",
    EVENT: rows.append("users.v1"),
    REPEATABLE: rows.append("users.v1", answer=rows.STORED_ANSWER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    note_id: UUID
    at: float
    note: str


CODEC: Codec[Noted] = Codec({"noted": Noted})
NOTE = rows.create_filler(
    rows.VALUE_BYTES - len(CODEC.encode(Noted(note_id=uuid4(), at=0, note="")))
)
METADATA = Metadata(correlation_id=UUID(rows.EVENT_ID), causation_id=UUID(rows.EVENT_ID))


def publish(event: Noted) -> PublicEvent:
    return CODEC.to_public_event(event, topic="users.v1", key=str(event.note_id))


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    async with servers.database(context, "shared") as dsn, servers.connected(dsn) as connection:
        await connection.execute(CREATE_PLAIN)
        for number in range(1, size.rounds + 1):
            tell_in_place(f"append: round {number} of {size.rounds}")
            await measure_round(dsn, connection, size, samples)
    return as_series(samples, size)


async def measure_round(
    dsn: str, connection: asyncpg.Connection, size: Size, samples: Samples
) -> None:
    """Each measurement begins after a checkpoint, so that none pays for the writes of another."""
    seconds = size.append_seconds
    for clients in size.append_clients:
        for name, script in SCRIPTS.items():
            await connection.execute("CHECKPOINT")
            outcome = await pgbench.run(dsn, script, seconds=seconds, clients=clients)
            samples[name_pgbench(name, clients)].append(outcome.per_second)
    for tasks in size.append_tasks:
        await connection.execute("CHECKPOINT")
        samples[name_bare(tasks)].append(await measure_bare(dsn, tasks, seconds))
        await connection.execute("CHECKPOINT")
        samples[name_stored(tasks)].append(await measure_stored(dsn, tasks, seconds))
    await connection.execute("CHECKPOINT")
    samples[PEER].append(await asyncio.to_thread(measure_peer, dsn, seconds))


def name_pgbench(name: str, clients: int) -> str:
    return f"pgbench, {clients} clients: {name}"


def name_bare(tasks: int) -> str:
    return f"Python, {tasks} tasks: INSERT into a plain table"


def name_stored(tasks: int) -> str:
    return f"Python, {tasks} tasks: EventStore.append"


async def measure_bare(dsn: str, tasks: int, seconds: int) -> float:
    """Each task has a connection of its own, and nothing between it and asyncpg."""
    payload = rows.VALUE.encode()
    async with AsyncExitStack() as stack:
        connections = [
            await stack.enter_async_context(servers.connected(dsn)) for _ in range(tasks)
        ]
        return await measure_rate(
            [partial(connection.execute, INSERT, payload) for connection in connections], seconds
        )


async def measure_stored(dsn: str, tasks: int, seconds: int) -> float:
    """As a service does it: a pool, and one event in a stream of its own."""
    async with postgres.open_pool(dsn, name="bench", connections_max=tasks) as pool:
        store = EventStore(
            pool,
            category="note",
            source="bench",
            codec=CODEC,
            publish=publish,
            relay_notifier=RelayNotifier(None),
        )

        async def append() -> None:
            note = Noted(note_id=new_id(), at=time.time(), note=NOTE)
            await store.append(note.note_id, 0, [note], metadata=METADATA)

        return await measure_rate([append] * tasks, seconds)


async def measure_rate(writes: Sequence[Callable[[], Awaitable[object]]], seconds: int) -> float:
    """Calls per second of all writes together; each is repeated in a task of its own."""
    await asyncio.gather(*(write() for write in writes))  # opens connections, prepares statements
    began_at = time.perf_counter()

    async def repeat(write: Callable[[], Awaitable[object]]) -> int:
        done = 0
        while time.perf_counter() - began_at < seconds:
            await write()
            done += 1
        return done

    done = await asyncio.gather(*(repeat(write) for write in writes))
    return sum(done) / (time.perf_counter() - began_at)


def measure_peer(dsn: str, seconds: int) -> float:
    """The same with pyeventsourcing: an event of the same size in a stream of its own."""
    with open_recorder(dsn) as recorder:
        began_at = time.perf_counter()
        done: list[int] = []

        def repeat() -> None:
            count = 0
            while time.perf_counter() - began_at < seconds:
                recorder.insert_events([create_event()])
                count += 1
            done.append(count)

        threads = [Thread(target=repeat) for _ in range(PEER_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(done) / (time.perf_counter() - began_at)


@contextmanager
def open_recorder(dsn: str) -> Iterator[PostgresApplicationRecorder]:
    address = urlsplit(dsn)
    datastore = PostgresDatastore(
        dbname=address.path.removeprefix("/"),
        host=address.hostname or "",
        port=address.port or 0,
        user=address.username or "",
        password=address.password or "",
        pool_size=PEER_THREADS,
    )
    with closing(datastore):
        recorder = PostgresApplicationRecorder(datastore)
        recorder.create_table()
        yield recorder


def create_event() -> StoredEvent:
    return StoredEvent(
        originator_id=uuid4(), originator_version=1, topic="noted", state=rows.VALUE.encode()
    )


def as_series(samples: Samples, size: Size) -> list[Series]:
    found: list[Series] = []
    for clients in size.append_clients:
        plain = series(samples, name_pgbench(PLAIN, clients), "1/s")
        goal = ratio_at_least(0.5 if clients == size.append_clients[0] else 0.6)
        found.append(plain)
        for name in (EVENT, REPEATABLE):
            ours = series(samples, name_pgbench(name, clients), "1/s", limit=plain, goal=goal)
            found.append(ours)
    for tasks in size.append_tasks:
        limit = series(samples, name_bare(tasks), "1/s")
        found += [limit, series(samples, name_stored(tasks), "1/s", limit=limit)]
    ours = series(samples, name_stored(PEER_THREADS), "1/s")
    return [*found, series(samples, PEER, "1/s", limit=ours)]


PART = Part(
    name="append",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES,)),
    measure=measure,
)
