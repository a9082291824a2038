"""A topic that was lost is published again from the event store, as it was."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from local_stack.testing import throwaway_kafka
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.history import History
from shared.inbox.consumer import Consumer, Delivery
from shared.messaging import reading, topics, wire
from shared.messaging.messages import PublicEvent
from shared.messaging.topics import TOPICS
from shared.messaging.wire import OutgoingRecord
from shared.outbox import lease, outbox, replay
from shared.outbox.outbox import OutboxRow
from shared.outbox.replay import RelayIsActive
from shared.runtime import telemetry
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Connection
from shared.runtime.progress import ProgressLine
from shared.runtime.relay_notifier import RelayNotifier
from test_support.counter import counter
from test_support.counter.counter import CODEC, TOPIC, Counted, counted, some_metadata, store_of
from test_support.counter.relays import StartRelayAt
from test_support.kafka_admin import lose_topic
from test_support.waits import HANGS_AFTER_SECONDS

ROWS_MAX = 10_000
LONG_AGO = datetime(2016, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)

Store = EventStore[Counted]
Log = dict[bytes, list[tuple[object, ...]]]


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[str]:
    """A broker whose topics may be lost."""
    with throwaway_kafka() as servers:
        asyncio.run(topics.create(Brokers(servers)))
        yield servers


def publish_but_threes(event: Counted) -> PublicEvent | None:
    """Every third event stays inside, so that what left before is not simply one less."""
    return None if event.number % 3 == 0 else counter.publish(event)


@pytest.fixture
def partly(pool: asyncpg.Pool) -> Store:
    """A store of events that lie years back, some of which stay inside."""
    times = (LONG_AGO + timedelta(minutes=7 * number) for number in range(10**6))
    return store_of(pool, publish=publish_but_threes, now=lambda: next(times))


async def add(store: Store, counter: UUID, start: int, count: int) -> None:
    numbers = range(start, start + count)
    await store.append(counter, start - 1, counted(counter, *numbers), metadata=some_metadata())


async def replayed(pool: asyncpg.Pool, store: Store) -> int:
    async with pool.acquire() as connection:
        history = History(connection, [store])  # type: ignore[arg-type]
        return await replay.replay(connection, history, ProgressLine())  # type: ignore[arg-type]


@asynccontextmanager
async def relay(start_relay_at: StartRelayAt, kafka_servers: str) -> AsyncIterator[None]:
    """A relay runs inside, and has given its lease back afterwards."""
    process = start_relay_at(kafka_servers)
    try:
        yield
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, HANGS_AFTER_SECONDS)


async def read(kafka_servers: str, count: int) -> list[ConsumerRecord]:
    """The first `count` records of the topic, and those that come soon after."""
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka_servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(TOPIC, n) for n in range(TOPICS[TOPIC].partitions)])
        records: list[ConsumerRecord] = []
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while len(records) < count:
                records += await more(consumer)
        return records + await more(consumer)
    finally:
        await consumer.stop()


async def more(consumer: AIOKafkaConsumer) -> list[ConsumerRecord]:
    batches = await consumer.getmany(timeout_ms=1000)
    return [record for batch in batches.values() for record in batch]


def log_of(records: Sequence[ConsumerRecord]) -> Log:
    """What the topic holds of each key, in its order; a trace is over long before a replay."""
    log: Log = defaultdict(list)
    for record in records:
        headers = [header for header in record.headers if header[0] != telemetry.TRACEPARENT]
        log[record.key].append((record.partition, record.timestamp, record.value, headers))
    return log


class Effects:
    """What a consumer did: version by version of each stream."""

    def __init__(self, name: str, pool: asyncpg.Pool) -> None:
        self.versions: dict[UUID, list[int]] = defaultdict(list)
        reactions = {TOPIC: {"counted": [self.react]}}
        self._consumer = Consumer(name, pool, reactions, self.refuse, RelayNotifier(None))

    async def react(self, connection: Connection, deliveries: Sequence[Delivery]) -> None:
        for each in deliveries:
            self.versions[each.message.stream_id].append(each.message.stream_version)

    async def refuse(self, letters: Sequence[OutgoingRecord]) -> None:
        raise AssertionError(letters)

    async def take(self, records: Sequence[ConsumerRecord]) -> None:
        await self._consumer.take([reading.to_record(record) for record in records])


async def test_a_lost_topic_is_published_again_byte_for_byte(
    partly: Store, pool: asyncpg.Pool, start_relay_at: StartRelayAt, own_kafka: str
) -> None:
    counters = [new_id() for _ in range(5)]
    for start in range(1, 22, 3):
        for each in counters:
            await add(partly, each, start, 3)
    public = 2 * 7 * len(counters)
    async with relay(start_relay_at, own_kafka):
        before = await read(own_kafka, public)
    known = Effects("users-worker", pool)
    await known.take(before)
    expected = {each: [n for n in range(1, 22) if n % 3] for each in counters}
    assert known.versions == expected

    await lose_topic(own_kafka, TOPIC)
    assert await replayed(pool, partly) == public
    async with relay(start_relay_at, own_kafka):
        after = await read(own_kafka, public)

    assert len(after) == len(before)
    assert log_of(after) == log_of(before)
    await known.take(after)
    assert known.versions == expected
    newcomer = Effects("orders-worker", pool)
    await newcomer.take(after)
    assert newcomer.versions == expected
    assert await pool.fetchval("SELECT count(*) FROM parked_streams") == 0


async def test_a_replay_is_refused_while_a_relay_is_active(
    store: Store, pool: asyncpg.Pool, database: str
) -> None:
    await add(store, new_id(), 1, 3)
    async with pool.acquire() as connection:
        assert await lease.acquire(connection, new_id())  # type: ignore[arg-type]
    before = await pool.fetchrow("TABLE relay")

    with pytest.raises(RelayIsActive, match="stop it first"):
        await replayed(pool, store)
    with pytest.raises(SystemExit, match="nothing is replayed: A relay is publishing"):
        await replay.run(database, [store])

    assert await pool.fetchrow("TABLE relay") == before
    assert await pool.fetchval("SELECT count(*) FROM outbox") == 3


async def taken_over(pool: asyncpg.Pool) -> list[OutboxRow]:
    """What the next relay publishes first."""
    async with pool.acquire() as connection:
        taken = await lease.acquire(connection, new_id())  # type: ignore[arg-type]
        assert taken is not None
        _, rows = await outbox.poll(connection, taken[1].published, ROWS_MAX)  # type: ignore[arg-type]
        return list(rows or ())


def numbers_in(rows: Sequence[OutboxRow]) -> list[int]:
    return [CODEC.decode("counted", row.value, 1).number for row in rows]


async def test_what_was_not_published_yet_is_published_once(
    store: Store, pool: asyncpg.Pool
) -> None:
    await add(store, new_id(), 1, 5)
    await replayed(pool, store)

    assert numbers_in(await taken_over(pool)) == [1, 2, 3, 4, 5]


async def test_a_replay_of_many_pages_keeps_the_order(store: Store, pool: asyncpg.Pool) -> None:
    one, other = new_id(), new_id()
    for start in range(1, 2_001, 200):
        await add(store, one, start, 200)
        await add(store, other, start, 200)
    await replayed(pool, store)

    rows = await taken_over(pool)
    for each in (one, other):
        mine = [row for row in rows if row.key == str(each).encode()]
        assert numbers_in(mine) == list(range(1, 2_001))
        versions = [dict(wire.unpack(row.headers))["ce_previousversion"] for row in mine]
        assert versions == [b"%d" % n for n in range(2_000)]


async def test_an_append_of_a_transaction_that_began_before_comes_after_the_replay(
    store: Store, pool: asyncpg.Pool
) -> None:
    counter = new_id()
    await add(store, counter, 1, 2)
    async with pool.acquire() as writer:
        transaction = writer.transaction()
        await transaction.start()
        await writer.execute("SELECT pg_current_xact_id()")
        await replayed(pool, store)
        await add(store.within(writer), counter, 3, 1)
        await transaction.commit()

    assert numbers_in(await taken_over(pool)) == [1, 2, 3]


async def test_two_replays_are_one(store: Store, pool: asyncpg.Pool) -> None:
    await add(store, new_id(), 1, 3)
    await replayed(pool, store)
    await replayed(pool, store)

    assert numbers_in(await taken_over(pool)) == [1, 2, 3]


async def test_a_partition_is_not_emptied_before_its_replayed_rows_are_published(
    partly: Store, pool: asyncpg.Pool
) -> None:
    await add(partly, new_id(), 1, 2)
    await replayed(pool, partly)

    assert await pool.fetchval("SELECT empty_outbox_partition('outbox_rest')") is False


async def test_a_replay_that_fails_changes_nothing(store: Store, pool: asyncpg.Pool) -> None:
    await add(store, new_id(), 1, 2)
    before = await pool.fetchrow("TABLE relay")
    await pool.execute("UPDATE events SET type = 'unknown' WHERE version = 2")

    with pytest.raises(KeyError):
        await replayed(pool, store)

    assert await pool.fetchrow("TABLE relay") == before
    assert await pool.fetchval("SELECT count(*) FROM outbox") == 2
