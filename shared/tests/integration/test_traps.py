"""Traps that other projects fell into, and the tests that keep this one out of them.

The number of a trap stands in the name of its test, here and elsewhere: `pytest -k trap_t9`.
"""

import asyncio
import os
import random
import shutil
import struct
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import hypothesis.strategies as st
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.protocol.produce import ProduceRequest
from hypothesis import HealthCheck, given, settings

from shared.eventsourcing.errors import VersionConflict
from shared.eventsourcing.event_store import EventStore
from shared.messaging import kafka, wire
from shared.messaging.messages import PublicEvent
from shared.messaging.topics import TOPICS
from shared.messaging.wire import OutgoingRecord
from shared.runtime import postgres
from shared.runtime.brokers import Brokers
from shared.runtime.declarations import load_declarations
from shared.runtime.identifiers import new_id
from test_support.counter.counter import CODEC, TOPIC, Counted, counted, some_metadata, store_of
from test_support.kafka_admin import admin_client, configure_topic
from test_support.topic_records import read_to_end
from test_support.waits import HANGS_AFTER_SECONDS
from verification.stress import adversaries, ledger, topic
from verification.stress.ledger import Linked, Memory, chain, digest
from verification.stress.relays import open_relays
from verification.stress.trial import wait_until_relay_is_up

CHECKOUT = Path(__file__).parents[3]
POLL_SECONDS = 0.05


@asynccontextmanager
async def topic_with(servers: str, **configuration: str) -> AsyncIterator[str]:
    """The name of a topic of one partition, gone afterwards."""
    name = f"trap-{uuid4().hex}"
    async with admin_client(servers) as client:
        await client.create_topics([NewTopic(name, 1, 1, topic_configs=configuration)])
        yield name
        await client.delete_topics([name])


async def values_of(servers: str, name: str) -> list[bytes]:
    """All that a topic of one partition holds."""
    return [record.value for record in await read_to_end(servers, [TopicPartition(name, 0)])]


INSERT_OUTBOX = """
    INSERT INTO outbox (topic, partition, key, value, headers, recorded_at)
    VALUES ($1, 0, 'key', $2, '\\x00', now() - interval '30 seconds')
"""
PUBLISHED = "SELECT published_xmax::text FROM relay"


async def test_trap_t3_what_the_broker_refuses_stays_unpublished(
    database: str, pool: asyncpg.Pool, kafka_servers: str, tmp_path: Path
) -> None:
    """A delivery error that is only logged would mark the row as published."""
    log = tmp_path / "log"
    limit = {"message.timestamp.before.max.ms": "1000"}
    async with topic_with(kafka_servers, **limit) as name, asyncio.timeout(HANGS_AFTER_SECONDS):
        await pool.execute(INSERT_OUTBOX, name, b"x" * 1_000)
        async with open_relays("ours", database, kafka_servers, log):
            while "InvalidTimestamp" not in log.read_text():
                await asyncio.sleep(POLL_SECONDS)
            assert await pool.fetchval(PUBLISHED) == "0"
            assert await values_of(kafka_servers, name) == []

            await configure_topic(
                kafka_servers, name, {"message.timestamp.before.max.ms": "100000"}
            )

            while await pool.fetchval(PUBLISHED) == "0":
                await asyncio.sleep(POLL_SECONDS)
        assert await values_of(kafka_servers, name) == [b"x" * 1_000]


def record_for(name: str) -> OutgoingRecord:
    return OutgoingRecord(name, 0, b"key", b"value", wire.pack([]), 0)


@asynccontextmanager
async def started(client: AIOKafkaProducer) -> AsyncIterator[AIOKafkaProducer]:
    await client.start()
    try:
        yield client
    finally:
        await kafka.close(client)


ALL_IN_SYNC_REPLICAS = -1
NO_PRODUCER_ID = -1
PRODUCER_ID = struct.Struct(">43xq")
"""Where a record batch of format 2 carries it."""


async def asked_and_signed(client: AIOKafkaProducer, name: str) -> tuple[int, int]:
    """The acknowledgements that a request to write asks for, and the producer id it carries."""
    requests: list[ProduceRequest] = []
    send = client.client.send

    async def overheard(node_id: int, request: object, **options: object) -> object:
        if isinstance(request, ProduceRequest):
            requests.append(request)
        return await send(node_id, request, **options)

    client.client.send = overheard
    await kafka.publish(client, [record_for(name)])
    [(_, [(_, batch)])] = requests[-1]._topics
    [producer_id] = PRODUCER_ID.unpack_from(bytes(batch))
    return requests[-1].required_acks, producer_id


async def test_trap_t4_the_producer_asks_all_replicas_and_signs_its_batches(
    kafka_servers: str,
) -> None:
    """By its id and sequence numbers the broker knows what a producer repeats."""
    async with (
        topic_with(kafka_servers) as name,
        started(kafka.create_producer(Brokers(kafka_servers), "test")) as client,
    ):
        acks, producer_id = await asked_and_signed(client, name)

    assert acks == ALL_IN_SYNC_REPLICAS
    assert producer_id != NO_PRODUCER_ID


async def test_trap_t4_a_producer_as_the_library_makes_it_does_neither(kafka_servers: str) -> None:
    async with (
        topic_with(kafka_servers) as name,
        started(AIOKafkaProducer(bootstrap_servers=kafka_servers)) as client,
    ):
        acks, producer_id = await asked_and_signed(client, name)

    assert acks != ALL_IN_SYNC_REPLICAS
    assert producer_id == NO_PRODUCER_ID


# T5: a wrong key, or none, and the events of one aggregate overtake each other.

CONNECTIONS = range(4)
STREAMS_PER_HISTORY = 3
LOCK_TIMEOUT_MILLISECONDS = 20
EXAMPLES = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What one connection does next. Only `append` reads the other fields."""

    connection: int
    action: str
    stream: int
    numbers: int
    is_public: bool


MOVES = st.builds(
    Move,
    connection=st.sampled_from(CONNECTIONS),
    action=st.sampled_from(["begin", "append", "append", "append", "commit", "rollback"]),
    stream=st.integers(0, STREAMS_PER_HISTORY - 1),
    numbers=st.integers(1, 3),
    is_public=st.booleans(),
)
PRIVATE = -1
"""A counter's number that stays inside the service."""


def publish_most(event: Counted) -> PublicEvent | None:
    if event.number == PRIVATE:
        return None
    return CODEC.to_public_event(event, topic=TOPIC, key=str(event.counter_id))


class Stage:
    """A running relay, its topic, and connections on which a history is played."""

    def __init__(
        self,
        store: EventStore[Counted],
        connections: Sequence[asyncpg.Connection],
        consumer: AIOKafkaConsumer,
    ) -> None:
        self._store = store
        self._connections = connections
        self._consumer = consumer

    async def play(self, history: Sequence[Move]) -> None:
        """Play a history on new streams; what is consumed of each is in the order of versions."""
        streams = [new_id() for _ in range(STREAMS_PER_HISTORY)]
        for move in history:
            await self._make(move, streams[move.stream])
        for connection in self._connections:
            if connection.is_in_transaction():
                await connection.execute("COMMIT")
        published = {stream: await self._published(stream) for stream in streams}
        assert await self._consumed(published) == published

    async def _make(self, move: Move, stream: UUID) -> None:
        connection = self._connections[move.connection]
        is_open = connection.is_in_transaction()
        match move.action:
            case "begin" if not is_open:
                await connection.execute("BEGIN")
                await connection.execute("SELECT pg_current_xact_id()")
            case "append":
                await self._append(connection, move, stream)
            case "commit" | "rollback" if is_open:
                await connection.execute(move.action)

    async def _append(self, connection: asyncpg.Connection, move: Move, stream: UUID) -> None:
        """A writer that finds the stream locked or changed loses its transaction."""
        store = self._store.within(connection)
        recorded = await store.read(stream)
        version = len(recorded)
        numbers = [
            number if move.is_public else PRIVATE
            for number in range(version + 1, version + 1 + move.numbers)
        ]
        try:
            await store.append(stream, version, counted(stream, *numbers), metadata=some_metadata())
        except (VersionConflict, asyncpg.LockNotAvailableError):
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")

    async def _published(self, stream: UUID) -> list[int]:
        """A public event's number is its version."""
        recorded = await self._store.read(stream)
        return [each.version for each in recorded if each.event.number != PRIVATE]

    async def _consumed(self, expected: dict[UUID, list[int]]) -> dict[UUID, list[int]]:
        """As many records as are expected, by their keys."""
        consumed: dict[UUID, list[int]] = {stream: [] for stream in expected}
        partitions: dict[UUID, set[int]] = defaultdict(set)
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while sum(map(len, consumed.values())) < sum(map(len, expected.values())):
                batches = await self._consumer.getmany(timeout_ms=100)
                for record in (each for records in batches.values() for each in records):
                    stream = UUID(record.key.decode())
                    consumed[stream].append(CODEC.decode("counted", record.value, 1).number)
                    partitions[stream].add(record.partition)
        assert all(len(each) == 1 for each in partitions.values())
        return consumed


@asynccontextmanager
async def stage(database: str, servers: str, log: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(
            postgres.open_pool(database, name="test", connections_max=2)
        )
        timeout = {"lock_timeout": f"{LOCK_TIMEOUT_MILLISECONDS}ms"}
        connections = [
            await asyncpg.connect(database, server_settings=timeout) for _ in CONNECTIONS
        ]
        for connection in connections:
            stack.push_async_callback(connection.close)
        consumer = AIOKafkaConsumer(bootstrap_servers=servers)
        await consumer.start()
        stack.push_async_callback(consumer.stop)
        partitions = [TopicPartition(TOPIC, number) for number in range(TOPICS[TOPIC].partitions)]
        consumer.assign(partitions)
        await consumer.seek_to_end(*partitions)
        await stack.enter_async_context(open_relays("ours", database, servers, log))
        await wait_until_relay_is_up(database)
        store = store_of(pool, publish=publish_most)
        yield Stage(store, connections, consumer)


def test_trap_t5_each_stream_is_consumed_in_the_order_of_its_versions(
    database: str, kafka_servers: str, tmp_path: Path
) -> None:
    with asyncio.Runner() as runner:
        opened = stage(database, kafka_servers, tmp_path / "log")
        playing = runner.run(opened.__aenter__())

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(history=st.lists(MOVES, min_size=5, max_size=40))
        def holds(history: Sequence[Move]) -> None:
            runner.run(playing.play(history))

        try:
            holds()
        finally:
            runner.run(opened.__aexit__(None, None, None))


# T9: a poller that remembers the highest number skips what is committed after a higher one.

WRITERS = 64
TRANSACTIONS_PER_WRITER = 10
COMMIT_DELAY_SECONDS_MAX = 0.03


async def write_with_random_delays(
    store: EventStore[Linked], pool: asyncpg.Pool, chance: random.Random
) -> UUID:
    """The stream that now has TRANSACTIONS_PER_WRITER events, each of a transaction of its own."""
    stream, last = new_id(), ""
    async with pool.acquire() as connection:
        for version in range(TRANSACTIONS_PER_WRITER):
            async with connection.transaction():
                events = chain(stream, version, last, 1)
                await store.within(connection).append(
                    stream, version, events, metadata=some_metadata()
                )
                await asyncio.sleep(chance.uniform(0, COMMIT_DELAY_SECONDS_MAX))
            last = digest(ledger.CODEC.encode(events[0]))
    return stream


async def skipped_by(relay: str, database: str, servers: str, log: Path) -> int:
    """How many events of 64 writers with random commit delays never arrive."""
    async with (
        postgres.open_pool(database, name="test", connections_max=WRITERS) as pool,
        topic.open_reader(servers) as reader,
        open_relays(relay, database, servers, log) as running,
    ):
        await wait_until_relay_is_up(database)
        store = adversaries.create_scene(pool, [], Memory(), running.notify, 0).store
        streams = await asyncio.gather(
            *(
                write_with_random_delays(store, pool, random.Random(number))
                for number in range(WRITERS)
            )
        )
        assert await running.stop() == []
        await reader.read_to_end()
    arrived = {
        (each.entry.stream_id, each.entry.version)
        for each in reader.deliveries
        if each.entry.stream_id in set(streams)
    }
    return WRITERS * TRANSACTIONS_PER_WRITER - len(arrived)


async def test_trap_t9_64_writers_with_random_commit_delays_skip_nothing(
    database: str, kafka_servers: str, tmp_path: Path
) -> None:
    assert await skipped_by("ours", database, kafka_servers, tmp_path / "log") == 0


async def test_trap_t9_a_cursor_on_the_position_skips_events_of_the_same_writers(
    database: str, kafka_servers: str, tmp_path: Path
) -> None:
    assert await skipped_by("position", database, kafka_servers, tmp_path / "log") > 0


MAKE_IDS = "from shared.runtime.identifiers import new_id\nfor _ in range(10_000): print(new_id())"


def start_making_ids() -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", MAKE_IDS], stdout=subprocess.PIPE, text=True)


def ids_of(process: "subprocess.Popen[str]") -> list[str]:
    output, _ = process.communicate(timeout=HANGS_AFTER_SECONDS)
    return output.split()


def test_trap_t14_ids_never_repeat_after_a_restart() -> None:
    """Nor between processes at the same time; after a restart they also continue upwards."""
    before = ids_of(start_making_ids())
    together = [start_making_ids(), start_making_ids()]
    after = [ids_of(process) for process in together]

    made = [*before, *after[0], *after[1]]
    assert len(set(made)) == len(made) == 30_000
    assert max(before) < min(after[0] + after[1])


# T16: a request handler that also writes to Kafka has two truths, and a crash between them.

DUAL_WRITE_CONTRACT = "Requests publish nothing themselves"


def contract(service: Path) -> dict[str, list[str]]:
    settings = tomllib.loads((service / "pyproject.toml").read_text())["tool"]["importlinter"]
    [found] = [each for each in settings["contracts"] if each["name"] == DUAL_WRITE_CONTRACT]
    return dict(found)


@pytest.mark.parametrize(
    "service", [each.folder for each in load_declarations().services if each.has_event_store]
)
def test_trap_t16_every_request_handler_is_under_the_contract(service: str) -> None:
    handlers = {
        ".".join(path.with_suffix("").parts[path.parts.index("src") + 1 :])
        for path in (CHECKOUT / service).glob("src/**/*.py")
        if "APIRouter(" in path.read_text()
    }
    declared = contract(CHECKOUT / service)

    assert handlers
    assert handlers <= set(declared["source_modules"])
    assert "shared.messaging.kafka" in declared["forbidden_modules"]


@pytest.mark.parametrize(
    ("handler", "offence"),
    [
        ("users-svc/src/users_svc/api.py", "from shared.messaging import kafka"),
        (
            "orders-svc/src/orders_svc/order/api.py",
            "from shared.messaging.kafka import create_producer",
        ),
    ],
)
def test_trap_t16_a_request_handler_that_imports_the_producer_is_refused(
    tmp_path: Path, handler: str, offence: str
) -> None:
    service = handler.partition("/")[0]
    shutil.copytree(CHECKOUT / service / "src", tmp_path / service / "src")
    shutil.copy(CHECKOUT / service / "pyproject.toml", tmp_path)
    with (tmp_path / handler).open("a") as file:
        file.write(f"\n{offence}\n")

    ended = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / service / "src")},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
        check=False,
    )

    assert ended.returncode == 1, ended.stderr
    assert f"{DUAL_WRITE_CONTRACT} BROKEN" in ended.stdout
