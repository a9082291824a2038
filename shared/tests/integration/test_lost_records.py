"""Records that a broker acknowledged and lost: nothing continues as if nothing had happened.

The negative controls show what happens where nothing is remembered: records are lost in silence.
"""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from local_stack.kafka import KAFKA
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.testing import throwaway_stack
from shared.eventsourcing.event_store import EventStore, get_partition
from shared.eventsourcing.history import History
from shared.inbox import parked
from shared.messaging import topics
from shared.messaging.topics import TOPICS
from shared.outbox import replay
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id
from shared.runtime.progress import ProgressLine
from test_support.counter.counted_records import CREATE_EFFECTS, effects_of
from test_support.counter.counter import TOPIC, Counted, counted, some_metadata
from test_support.counter.desk import NAME
from test_support.counter.relays import StartRelay, StartRelayAt
from test_support.counter.workers import worker
from test_support.kafka_admin import lose_topic
from test_support.power_cut import cut_power
from test_support.waits import HANGS_AFTER_SECONDS

IS_PUBLISHED = """
    SELECT target IS NULL
        AND NOT EXISTS (SELECT FROM outbox WHERE transaction_id >= published_xmax)
        AND NOT EXISTS (SELECT FROM outbox WHERE transaction_id = ANY (published_xip))
    FROM relay
"""
FORGET = "UPDATE relay SET acknowledged = '{}'"
"""What a relay remembers is what lets it notice the loss."""


@pytest.fixture
def broker() -> Iterator[StackContext]:
    """A broker of this test alone, with all topics."""
    with throwaway_stack(StackSpec(processes=(KAFKA,))) as context:
        asyncio.run(topics.create(Brokers(context.address("kafka"))))
        yield context


@pytest.fixture
def start(start_relay_at: StartRelayAt, broker: StackContext) -> StartRelay:
    return lambda: start_relay_at(broker.address("kafka"))


async def cut(broker: StackContext) -> None:
    """The last two records of the counter are gone, each of which was sent alone."""
    await asyncio.to_thread(cut_power, broker, TOPIC, 2)


class Shop:
    """A counter that is counted one by one, and the effects of a consumer."""

    def __init__(self, store: EventStore[Counted], pool: asyncpg.Pool) -> None:
        self.store = store
        self.pool = pool
        self.counter = new_id()
        self.count = 0

    async def add(self, counter: UUID, number: int) -> None:
        """An event, in a batch of its own."""
        await self.store.append(
            counter, number - 1, counted(counter, number), metadata=some_metadata()
        )

    async def count_on(self) -> None:
        self.count += 1
        await self.add(self.counter, self.count)

    async def until_published(self) -> None:
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while not await self.pool.fetchval(IS_PUBLISHED):
                await asyncio.sleep(0.02)

    async def until_applied(self) -> None:
        expected = list(range(1, self.count + 1))
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while await effects_of(self.pool, self.counter) != expected:
                await asyncio.sleep(0.02)


async def until_committed(broker: StackContext, offset: int) -> None:
    """The worker has committed this offset, in the one partition that it has read."""
    client = AIOKafkaConsumer(
        bootstrap_servers=broker.address("kafka"), group_id=NAME, enable_auto_commit=False
    )
    partitions = [TopicPartition(TOPIC, number) for number in range(TOPICS[TOPIC].partitions)]
    async with client, asyncio.timeout(HANGS_AFTER_SECONDS):
        while max([await client.committed(each) or 0 for each in partitions]) < offset:
            await asyncio.sleep(0.1)


@pytest.fixture
async def shop(store: EventStore[Counted], pool: asyncpg.Pool) -> Shop:
    await pool.execute(CREATE_EFFECTS)
    return Shop(store, pool)


async def until_ended(process: "subprocess.Popen[bytes]") -> int:
    return await asyncio.to_thread(process.wait, HANGS_AFTER_SECONDS)


async def replay_all(shop: Shop) -> None:
    async with shop.pool.acquire() as connection:
        history = History(connection, [shop.store])  # type: ignore[arg-type]
        await replay.replay(connection, history, ProgressLine())  # type: ignore[arg-type]


async def lose_applied_records(
    shop: Shop, start: StartRelay, database: str, broker: StackContext, tmp_path: Path
) -> None:
    """Count three times with relay and worker, end both, and cut the log."""
    relay = start()
    async with worker(database, broker.address("kafka"), tmp_path):
        for _ in range(3):
            await shop.count_on()
            await shop.until_applied()
        await until_committed(broker, shop.count)
    relay.terminate()
    assert await until_ended(relay) == 0
    await cut(broker)


@pytest.mark.verify(part="lost-records")
async def test_after_a_power_cut_of_the_broker_all_is_refused_until_a_replay_repairs_it(
    shop: Shop, start: StartRelay, database: str, broker: StackContext, tmp_path: Path
) -> None:
    await lose_applied_records(shop, start, database, broker, tmp_path)
    await shop.count_on()

    assert await until_ended(start()) == 1
    assert await until_ended(start()) == 1, "it stays refused"
    async with worker(database, broker.address("kafka"), tmp_path) as reader:
        assert await asyncio.wait_for(reader.wait(), HANGS_AFTER_SECONDS) == 1

    for log in ("complaints.log", "worker.log"):
        refusal = (tmp_path / log).read_text()
        assert f"Kafka has lost records of {TOPIC}/" in refusal
        assert "run `make republish`" in refusal
        assert "Traceback" not in refusal
    await lose_topic(broker.address("kafka"), TOPIC)
    await replay_all(shop)
    start()
    async with worker(database, broker.address("kafka"), tmp_path):
        await shop.until_applied()
        await shop.count_on()
        await shop.until_applied()


async def test_a_relay_that_outlives_its_broker_notices_the_loss_and_no_other_continues(
    shop: Shop, start: StartRelay, broker: StackContext, tmp_path: Path
) -> None:
    """What it sends next takes the place of what is lost, and the log is long enough again."""
    relay = start()
    for _ in range(3):
        await shop.count_on()
        await shop.until_published()
    await cut(broker)
    for _ in range(3):
        await shop.count_on()

    assert await until_ended(relay) == 1
    assert await until_ended(start()) == 1
    assert f"Kafka has lost records of {TOPIC}/" in (tmp_path / "complaints.log").read_text()


@pytest.mark.verify(part="lost-records")
async def test_without_what_they_remember_records_are_lost_in_silence(
    shop: Shop, start: StartRelay, database: str, broker: StackContext, tmp_path: Path
) -> None:
    """The negative control: the first event of another stream has no effect and leaves no trace."""
    (tmp_path / "unwatched").touch()
    await lose_applied_records(shop, start, database, broker, tmp_path)
    await shop.pool.execute(FORGET)
    partition = get_partition(TOPIC, str(shop.counter))
    ids = iter(new_id, None)
    other = next(each for each in ids if get_partition(TOPIC, str(each)) == partition)

    start()
    await shop.add(other, 1)
    await shop.until_published()
    for _ in range(2):
        await shop.count_on()
        await shop.until_published()
    async with (
        worker(database, broker.address("kafka"), tmp_path),
        asyncio.timeout(HANGS_AFTER_SECONDS),
    ):
        while not (streams := await parked.list_streams(shop.pool, NAME)):
            await asyncio.sleep(0.02)

    assert [stream.stream_id for stream in streams] == [shop.counter]
    assert await effects_of(shop.pool, other) == []
