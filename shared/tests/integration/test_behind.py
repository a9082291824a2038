"""A partition that takes no records falls behind alone: the others go on, and get nothing twice."""

import asyncio
import subprocess
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import NewPartitions, NewTopic

from local_stack import supervision
from local_stack.down import stop_together
from local_stack.kafka import KAFKA, home, kafka_uuid
from local_stack.run_folder import write_atomically
from local_stack.stack_spec import HOST, Port, Process, StackContext, StackSpec
from local_stack.testing import throwaway_stack
from shared.outbox.behind import BehindPartitions
from shared.outbox.outbox import RelayCheckpoint, Snapshot
from shared.outbox.relay import CHECKPOINT_SECONDS, ROWS_MAX
from shared.runtime import log_lines
from test_support.counter.relays import StartRelayAt
from test_support.kafka_admin import admin_client, configure_topic, create_topics
from test_support.system.eventually import POLL_SECONDS
from test_support.waits import HANGS_AFTER_SECONDS

ROUNDS = 20
STORED_SECONDS = 5 * CHECKPOINT_SECONDS
"""After which the checkpoint would be stored, if nothing was behind."""
INSERT = """
    INSERT INTO outbox (topic, partition, key, value, headers, recorded_at)
    VALUES ($1, $2, 'key', $3, '\\x00', now())
"""
INSERT_MANY = """
    INSERT INTO outbox (topic, partition, key, value, headers, recorded_at)
    SELECT topic, partition, 'key', number::text::bytea AS value, '\\x00', now()
    FROM generate_series($1::int, $2::int - 1) AS number,
         (VALUES ($3::text, $4::int), ($5::text, 0)) AS place (topic, partition)
    ORDER BY number
"""
IS_ALL_PUBLISHED = """
    SELECT NOT EXISTS (SELECT FROM outbox, relay WHERE transaction_id >= published_xmax)
"""


Act = Callable[[], Coroutine[Any, Any, None]]


@dataclass(slots=True, kw_only=True)
class Sick:
    """A topic one of whose partitions takes no records until `heal`."""

    servers: str
    topic: str
    heal: Act
    partition: int = 0


def new_name() -> str:
    return f"behind-{uuid4().hex}"


async def a_wrong_clock(servers: str) -> Sick:
    """A record of now is too far from the broker's clock, as far as this topic says."""
    topic, far = new_name(), {"message.timestamp.before.max.ms": "0"}
    await create_topics(servers, NewTopic(topic, 1, 1, topic_configs=far))
    return Sick(servers=servers, topic=topic, heal=lambda: configure_topic(servers, topic, {}))


async def no_such_partition(servers: str) -> Sick:
    topic = new_name()
    await create_topics(servers, NewTopic(topic, 1, 1))

    async def add_partition() -> None:
        async with admin_client(servers) as client:
            await client.create_partitions({topic: NewPartitions(2)})

    return Sick(servers=servers, topic=topic, partition=1, heal=add_partition)


def prepare_second(context: StackContext) -> None:
    """A second broker of the first one's cluster."""
    folder, broker = context.folder / "kafka-2", context.address("kafka-2")
    (folder / "data").mkdir(parents=True)
    of_first = (home(context) / "server.properties").read_text()
    own = f"""
process.roles=broker
node.id=2
listeners=PLAINTEXT://{broker}
advertised.listeners=PLAINTEXT://{broker}
"""
    folders = of_first.replace("/kafka/data", "/kafka-2/data")
    write_atomically(folder / "server.properties", folders + own)
    identity = (home(context) / "data" / "meta.properties").read_text()
    [cluster] = [line for line in identity.splitlines() if line.startswith("cluster.id")]
    lines = ("version=1", cluster, "node.id=2", f"directory.id={kafka_uuid()}", "")
    write_atomically(folder / "data" / "meta.properties", "\n".join(lines))


async def probe_second(context: StackContext) -> None:
    _, writer = await asyncio.open_connection(HOST, context.ports["kafka-2"])
    writer.close()


SECOND = Process(
    name="kafka-2",
    command=lambda context: [
        *KAFKA.command(context)[:-1],
        str(context.folder / "kafka-2" / "server.properties"),
    ],
    ports=(Port(name="kafka-2", default=19094),),
    prepare=prepare_second,
    probe=probe_second,
    tier=KAFKA.tier,
    stop_seconds_max=KAFKA.stop_seconds_max,
)


@pytest.fixture
def two_brokers() -> Iterator[StackContext]:
    with throwaway_stack(StackSpec(processes=(KAFKA, SECOND))) as context:
        yield context


async def no_leader(context: StackContext) -> tuple[Sick, Act]:
    """A partition that only the second broker has, and what stops that broker."""
    return await on_second(context, NewTopic(new_name(), -1, -1, replica_assignments={0: [2]}))


async def too_few_replicas(context: StackContext) -> tuple[Sick, Act]:
    """A partition that needs both brokers, and what stops the one that does not lead it."""
    both = {"min.insync.replicas": "2"}
    name, assignments = new_name(), {0: [1, 2]}
    topic = NewTopic(name, -1, -1, replica_assignments=assignments, topic_configs=both)
    return await on_second(context, topic)


async def on_second(context: StackContext, topic: NewTopic) -> tuple[Sick, Act]:
    servers = context.address("kafka")
    await create_topics(servers, topic)
    sick = Sick(
        servers=servers,
        topic=topic.name,
        heal=lambda: asyncio.to_thread(supervision.start, context.folder, SECOND.name),
    )
    return sick, lambda: asyncio.to_thread(stop_together, context.folder, [SECOND])


class Shop:
    """Rows for a sick partition and for a well one, in turn."""

    def __init__(self, pool: asyncpg.Pool, sick: Sick, well: str) -> None:
        self._pool = pool
        self._sick = sick
        self._well = well
        self.written = 0

    @classmethod
    async def open(cls, pool: asyncpg.Pool, sick: Sick) -> "Shop":
        """With a new topic that is well."""
        well = new_name()
        await create_topics(sick.servers, NewTopic(well, -1, -1, replica_assignments={0: [1]}))
        return cls(pool, sick, well)

    async def write(self, rounds: int = ROUNDS) -> None:
        for _ in range(rounds):
            value = b"%d" % self.written
            await self._pool.execute(INSERT, self._sick.topic, self._sick.partition, value)
            await self._pool.execute(INSERT, self._well, 0, value)
            self.written += 1

    async def write_at_once(self, rounds: int) -> None:
        first, self.written = self.written, self.written + rounds
        sick = self._sick
        await self._pool.execute(
            INSERT_MANY, first, self.written, sick.topic, sick.partition, self._well
        )

    async def all_arrived(self) -> None:
        """Each row is there once, and in its order."""
        wanted = [*range(self.written)]
        await has(self._sick.servers, TopicPartition(self._well, 0), wanted)
        await has(
            self._sick.servers, TopicPartition(self._sick.topic, self._sick.partition), wanted
        )

    async def well_arrived(self) -> None:
        await has(self._sick.servers, TopicPartition(self._well, 0), [*range(self.written)])


async def has(servers: str, partition: TopicPartition, wanted: Sequence[int]) -> None:
    """Wait until a partition holds these numbers, and no others."""
    async with (
        asyncio.timeout(HANGS_AFTER_SECONDS),
        AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([partition])
        found: list[int] = []
        while len(found) < len(wanted):
            batches = await consumer.getmany(timeout_ms=200)
            found += [int(record.value) for records in batches.values() for record in records]
    assert found == [*wanted]


async def until_all_is_published(pool: asyncpg.Pool) -> None:
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while not await pool.fetchval(IS_ALL_PUBLISHED):
            await asyncio.sleep(POLL_SECONDS)


async def check_that_only_the_sick_one_waits(
    pool: asyncpg.Pool, sick: Sick, shop: Shop, complaints: Path
) -> None:
    for _ in range(3):
        await shop.write()
        await shop.well_arrived()
    said = await asyncio.to_thread(complaints.read_text)
    behind = [
        line for line in map(log_lines.parse, said.splitlines()) if line and "partition" in line
    ]
    assert (sick.topic, sick.partition) in {(each["topic"], each["partition"]) for each in behind}
    await asyncio.sleep(STORED_SECONDS)
    assert not await pool.fetchval(IS_ALL_PUBLISHED), "a crash would lose what waits"

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sick.heal())
        tasks.create_task(shop.write(10 * ROUNDS))
    await shop.all_arrived()
    await shop.write()
    await shop.all_arrived()
    await until_all_is_published(pool)


@pytest.mark.parametrize("cause", [a_wrong_clock, no_such_partition])
async def test_only_the_partition_that_takes_no_records_waits(
    pool: asyncpg.Pool,
    start_relay_at: StartRelayAt,
    kafka_servers: str,
    complaints: Path,
    cause: Callable[[str], Coroutine[Any, Any, Sick]],
) -> None:
    sick = await cause(kafka_servers)
    start_relay_at(kafka_servers)
    await check_that_only_the_sick_one_waits(pool, sick, await Shop.open(pool, sick), complaints)


@pytest.mark.parametrize("cause", [no_leader, too_few_replicas])
async def test_only_the_partition_that_lacks_a_broker_waits(
    pool: asyncpg.Pool,
    start_relay_at: StartRelayAt,
    two_brokers: StackContext,
    complaints: Path,
    cause: Callable[[StackContext], Coroutine[Any, Any, tuple[Sick, Act]]],
) -> None:
    sick, fall_sick = await cause(two_brokers)
    shop = await Shop.open(pool, sick)
    start_relay_at(sick.servers)
    await shop.write()
    await shop.all_arrived()
    await fall_sick()
    await check_that_only_the_sick_one_waits(pool, sick, shop, complaints)


async def test_a_relay_starts_while_a_partition_has_no_leader(
    pool: asyncpg.Pool, start_relay_at: StartRelayAt, two_brokers: StackContext
) -> None:
    """It cannot know then whether records of that partition are lost."""
    sick, fall_sick = await no_leader(two_brokers)
    shop = await Shop.open(pool, sick)
    relay = start_relay_at(sick.servers)
    await shop.write()
    await shop.all_arrived()
    await until_all_is_published(pool)
    stop(relay)
    await fall_sick()

    start_relay_at(sick.servers)
    await shop.write()
    await shop.well_arrived()
    await sick.heal()
    await shop.all_arrived()


def stop(relay: "subprocess.Popen[bytes]") -> None:
    relay.terminate()
    assert relay.wait(HANGS_AFTER_SECONDS) == 0


async def test_a_partition_falls_behind_within_a_large_window(
    pool: asyncpg.Pool, start_relay_at: StartRelayAt, kafka_servers: str
) -> None:
    """Also when it takes records again while another window is read."""
    sick = await a_wrong_clock(kafka_servers)
    shop = await Shop.open(pool, sick)
    await shop.write_at_once(ROWS_MAX)
    start_relay_at(kafka_servers)
    await shop.well_arrived()
    await shop.write_at_once(5 * ROWS_MAX)
    await sick.heal()
    await shop.all_arrived()
    await shop.write()
    await shop.all_arrived()
    await until_all_is_published(pool)


async def test_a_relay_that_dies_meanwhile_loses_nothing(
    pool: asyncpg.Pool, start_relay_at: StartRelayAt, kafka_servers: str
) -> None:
    """Its successor sends again what others have had, from where the first partition waits."""
    sick = await a_wrong_clock(kafka_servers)
    shop = await Shop.open(pool, sick)
    relay = start_relay_at(kafka_servers)
    await shop.write()
    await shop.well_arrived()
    await asyncio.sleep(STORED_SECONDS)
    relay.kill()
    relay.wait()
    start_relay_at(kafka_servers)
    await shop.write()
    await sick.heal()
    await has(kafka_servers, TopicPartition(sick.topic, sick.partition), range(shop.written))


def test_what_is_stored_is_what_all_partitions_have() -> None:
    behind = BehindPartitions()
    first = RelayCheckpoint(Snapshot("10", ("4", "7")))
    later = RelayCheckpoint(Snapshot("10", ("7",)), target="8:12:9", floor=5)
    progress = RelayCheckpoint(Snapshot("20"), ends={"a/0": 3})
    assert behind.limit(progress) == progress

    behind.add(("a", 1), later, "late")
    assert behind.limit(progress) == replace(later, ends={"a/0": 3})
    behind.add(("a", 2), first, "first")
    assert behind.limit(progress) == replace(first, ends={"a/0": 3})

    for each in behind.select(is_level=False):
        behind.remove(each)
    assert behind.limit(progress) == progress


@pytest.mark.parametrize("text", ["4:10:4,7", "7:10:7", "10:10:"])
async def test_a_snapshot_is_written_as_postgresql_writes_it(pool: asyncpg.Pool, text: str) -> None:
    assert Snapshot.parse(text).text == text
    assert await pool.fetchval("SELECT $1::text::pg_snapshot::text", text) == text
