"""Writers that do everything in transactions that could break a relay.

They take their transaction ids early and commit late, roll back in whole and in part, append to
several streams in one transaction, hold some open for long, and disconnect while they commit.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from shared.eventsourcing.errors import VersionConflict
from shared.eventsourcing.event_store import EventStore
from shared.messaging.messages import Metadata
from shared.runtime import postgres
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Connection
from shared.runtime.relay_notifier import RelayNotifier
from verification.stress.ledger import CODEC, Entry, Linked, Memory, chain, digest, publish

LOCK_TIMEOUT_MILLISECONDS = 100

EARLY_ID_SHARE = 0.5
SAVEPOINT_SHARE = 0.15
SAVEPOINT_ROLLBACK_SHARE = 0.5
ROLLBACK_SHARE = 0.1
SLOW_SHARE = 0.002
VANISH_SHARE = 0.002
APPENDS = (1, 1, 1, 2, 3)
EVENTS = (1, 1, 1, 2)
EARLY_SECONDS_MAX = 0.02
THINKING_SECONDS_MAX = 0.01
COMMIT_DELAY_SECONDS_MAX = 0.02
VANISH_SECONDS_MAX = 0.003

LOST_RACES = (
    VersionConflict,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
)

HEAD = "SELECT version, data FROM events WHERE stream_id = $1 ORDER BY version DESC LIMIT 1"
WRITE_SOMETHING_ELSE = """
    INSERT INTO idempotency_keys (scope, key, fingerprint, status, headers, body, recorded_at)
    VALUES ('stress', $1, '', 201, '{}', '', now())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What all writers of a run share."""

    pool: asyncpg.Pool
    store: EventStore[Linked]
    streams: Sequence[UUID]
    memory: Memory
    notify: Callable[[], None]
    slow_seconds: float


def create_scene(
    pool: asyncpg.Pool,
    streams: Sequence[UUID],
    memory: Memory,
    notify: Callable[[], None],
    slow_seconds: float,
) -> Scene:
    """A scene over new streams; `notify` is called after each commit."""
    store = EventStore(
        pool,
        category="linked",
        source="stress",
        codec=CODEC,
        publish=publish,
        relay_notifier=RelayNotifier(None),
    )
    return Scene(
        pool=pool,
        store=store,
        streams=streams,
        memory=memory,
        notify=notify,
        slow_seconds=slow_seconds,
    )


async def write(scene: Scene, chance: random.Random, until: float) -> None:
    """Write one transaction after another, until that time of the monotonic clock."""
    while time.monotonic() < until:
        async with scene.pool.acquire() as connection:
            await connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MILLISECONDS}")
            is_connected = True
            while is_connected and time.monotonic() < until:
                is_connected = await run_transaction(scene, connection, chance)


async def hold_open(scene: Scene, chance: random.Random, until: float) -> None:
    """The one long transaction of a run: it writes at its start and commits at its end."""
    async with scene.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        written = await append(scene, connection, chance, new_id())
        await asyncio.sleep(until - time.monotonic())
        await commit(scene, transaction, written)


async def run_transaction(scene: Scene, connection: Connection, chance: random.Random) -> bool:
    """Whether the connection is still open. A lost race is rolled back and not retried."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        written = await append_several(scene, connection, chance)
    except LOST_RACES:
        scene.memory.races_lost += 1
        await transaction.rollback()
        return True
    await pause(chance, COMMIT_DELAY_SECONDS_MAX)
    if chance.random() < SLOW_SHARE:
        await asyncio.sleep(scene.slow_seconds)
    if chance.random() < ROLLBACK_SHARE:
        await transaction.rollback()
    elif chance.random() < VANISH_SHARE:
        await vanish(scene, connection, transaction, written, chance)
        return False
    else:
        await commit(scene, transaction, written)
    return True


async def append_several(
    scene: Scene, connection: Connection, chance: random.Random
) -> list[Entry]:
    """The entries that the transaction writes if it commits."""
    if chance.random() < EARLY_ID_SHARE:
        await connection.execute(WRITE_SOMETHING_ELSE, str(new_id()))
        await pause(chance, EARLY_SECONDS_MAX)
    written: list[Entry] = []
    for _ in range(chance.choice(APPENDS)):
        stream_id = chance.choice(scene.streams)
        if chance.random() < SAVEPOINT_SHARE:
            written += await append_in_savepoint(scene, connection, chance, stream_id)
        else:
            written += await append(scene, connection, chance, stream_id)
    return written


async def append_in_savepoint(
    scene: Scene, connection: Connection, chance: random.Random, stream_id: UUID
) -> list[Entry]:
    """The entries of an append in a savepoint: none when it is rolled back or lost a race."""
    savepoint = connection.transaction()
    await savepoint.start()
    try:
        written = await append(scene, connection, chance, stream_id)
    except LOST_RACES:
        scene.memory.races_lost += 1
        await savepoint.rollback()
        return []
    if chance.random() < SAVEPOINT_ROLLBACK_SHARE:
        await savepoint.rollback()
        return []
    await savepoint.commit()
    return written


async def append(
    scene: Scene, connection: Connection, chance: random.Random, stream_id: UUID
) -> list[Entry]:
    """Append to a stream as a service does: at the version that was read."""
    head = await connection.fetchrow(HEAD, stream_id)
    version, last = (head["version"], digest(head["data"].encode())) if head else (0, "")
    await pause(chance, THINKING_SECONDS_MAX)
    events = chain(stream_id, version, last, chance.choice(EVENTS))
    metadata = Metadata(correlation_id=new_id(), causation_id=new_id())
    await scene.store.within(connection).append(stream_id, version, events, metadata=metadata)
    return [
        Entry(stream_id=stream_id, version=event.version, digest=digest(CODEC.encode(event)))
        for event in events
    ]


async def commit(
    scene: Scene, transaction: asyncpg.transaction.Transaction, written: Sequence[Entry]
) -> None:
    sent_at = time.time()
    await transaction.commit()
    scene.memory.committed_at.update(dict.fromkeys(written, sent_at))
    scene.notify()


async def vanish(
    scene: Scene,
    connection: Connection,
    transaction: asyncpg.transaction.Transaction,
    written: Sequence[Entry],
    chance: random.Random,
) -> None:
    """Disconnect during COMMIT, so that its outcome is unknown."""
    scene.memory.unsure.update(written)
    committing = asyncio.create_task(transaction.commit())
    await pause(chance, VANISH_SECONDS_MAX)
    connection.terminate()
    try:
        await committing
    except postgres.UNAVAILABLE:
        pass


async def pause(chance: random.Random, seconds_max: float) -> None:
    await asyncio.sleep(chance.uniform(0, seconds_max))
