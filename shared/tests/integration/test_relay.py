"""From outbox to Kafka: nothing lost, each key in order, duplicates only after a crash."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from local_stack import ports
from shared.eventsourcing.event_store import EventStore
from shared.messaging.topics import TOPICS
from shared.outbox.lease import LEASE_SECONDS
from shared.outbox.relay import ROWS_MAX
from shared.outbox.relay_process import EXIT_FENCED
from shared.runtime.failpoints import Failpoint
from shared.runtime.identifiers import new_id
from test_support.counter.counter import TOPIC, Counted, counted, some_metadata

DEADLINE_SECONDS = 60
LEASE_AND_MORE_SECONDS = 15

StartRelay = Callable[..., "subprocess.Popen[bytes]"]
"""Optionally with a fault point, at which that relay dies."""
StartRelayAt = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start_relay_at(database: str, tmp_path: Path) -> Iterator[StartRelayAt]:
    """Starts a relay on a broker; what it complains about is added to `complaints`."""
    started: list[subprocess.Popen[bytes]] = []

    def start(bootstrap_servers: str, *points: Failpoint) -> "subprocess.Popen[bytes]":
        environment = os.environ | {
            "DATABASE_URL": database,
            "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
            "HTTP_PORT": str(ports.find_free()),
        }
        script = Path(__file__).with_name("relay_main.py")
        with (tmp_path / "complaints").open("ab") as complaints:
            process = subprocess.Popen(
                [sys.executable, script, "test-relay", *points],
                env=environment,
                stderr=complaints,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def start_relay(start_relay_at: StartRelayAt, kafka_servers: str) -> StartRelay:
    return lambda *points: start_relay_at(kafka_servers, *points)


class Log:
    """What stands in Kafka from now on, by key; other tests' keys are there too."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self.consumer = consumer
        self.numbers: dict[str, list[int]] = defaultdict(list)
        self.headers: dict[str, list[tuple[str, bytes]]] = {}

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not done():
                batches = await self.consumer.getmany(timeout_ms=200)
                for records in batches.values():
                    for record in records:
                        key = record.key.decode()
                        self.numbers[key].append(json.loads(record.value)["number"])
                        self.headers[key] = list(record.headers)

    def first_deliveries(self, counter: UUID) -> list[int]:
        return list(dict.fromkeys(self.numbers[str(counter)]))


@asynccontextmanager
async def kafka_log(kafka_servers: str) -> AsyncIterator[Log]:
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka_servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        partitions = [TopicPartition(TOPIC, n) for n in range(TOPICS[TOPIC].partitions)]
        consumer.assign(partitions)
        await consumer.seek_to_end(*partitions)
        for partition in partitions:
            await consumer.position(partition)
        yield Log(consumer)
    finally:
        await consumer.stop()


async def add(store: EventStore[Counted], counter: UUID, start: int, count: int) -> None:
    numbers = range(start, start + count)
    await store.append(counter, start - 1, counted(counter, *numbers), metadata=some_metadata())


async def test_each_event_arrives_once_and_in_order(
    store: EventStore[Counted], start_relay: StartRelay, kafka_servers: str
) -> None:
    counters = [new_id() for _ in range(5)]
    async with kafka_log(kafka_servers) as log:
        start_relay()
        for start in range(1, 20):
            for counter in counters:
                await add(store, counter, start, 1)
        await log.until(lambda: all(len(log.numbers[str(each)]) >= 19 for each in counters))

    for counter in counters:
        assert log.numbers[str(counter)] == list(range(1, 20))


async def test_a_backlog_larger_than_a_page_arrives_whole(
    store: EventStore[Counted], start_relay: StartRelay, kafka_servers: str
) -> None:
    counter, count = new_id(), 3 * ROWS_MAX + 7
    for start in range(1, count + 1, 1_000):
        await add(store, counter, start, min(1_000, count + 1 - start))
    async with kafka_log(kafka_servers) as log:
        start_relay()
        await log.until(lambda: len(log.numbers[str(counter)]) >= count)

    assert log.numbers[str(counter)] == list(range(1, count + 1))


async def test_trap_t2_a_killed_relay_loses_nothing_and_keeps_the_order(
    store: EventStore[Counted], start_relay: StartRelay, kafka_servers: str
) -> None:
    """What was committed before the crash is published after the restart."""
    counters, rounds = [new_id() for _ in range(4)], 60
    async with kafka_log(kafka_servers) as log:
        relay = start_relay()
        for start in range(1, rounds + 1):
            for counter in counters:
                await add(store, counter, start, 1)
            if start % 20 == 0:
                await log.until(lambda: len(log.numbers[str(counters[0])]) > 5)
                relay.kill()
                relay.wait()
                relay = start_relay()
        await log.until(lambda: all(len(log.first_deliveries(each)) >= rounds for each in counters))

    for counter in counters:
        assert log.first_deliveries(counter) == list(range(1, rounds + 1))


@pytest.mark.parametrize("relays", [2, 4])
async def test_trap_t8_of_several_relays_one_publishes(
    store: EventStore[Counted], start_relay: StartRelay, kafka_servers: str, relays: int
) -> None:
    counter = new_id()
    async with kafka_log(kafka_servers) as log:
        for _ in range(relays):
            start_relay()
        for number in range(1, 50):
            await add(store, counter, number, 1)
        await log.until(lambda: len(log.numbers[str(counter)]) >= 49)

    assert log.numbers[str(counter)] == list(range(1, 50))


RELAY_STEPS = [
    Failpoint.ROWS_READ,
    Failpoint.RECORDS_HANDED_OVER,
    Failpoint.RECORDS_ACKNOWLEDGED,
    Failpoint.PROGRESS_MADE,
    Failpoint.CHECKPOINT_STORED,
    Failpoint.LEASE_RELEASED,
]


@pytest.mark.parametrize("step", RELAY_STEPS)
async def test_a_relay_that_dies_after_any_step_loses_nothing(
    store: EventStore[Counted], start_relay: StartRelay, kafka_servers: str, step: Failpoint
) -> None:
    counter = new_id()
    async with kafka_log(kafka_servers) as log:
        doomed = start_relay(step)
        await add(store, counter, 1, 5)
        if step is Failpoint.LEASE_RELEASED:
            await log.until(lambda: len(log.numbers[str(counter)]) >= 5)
            doomed.terminate()
        assert await asyncio.to_thread(doomed.wait, LEASE_AND_MORE_SECONDS) == -signal.SIGKILL
        await add(store, counter, 6, 5)
        start_relay()
        await log.until(lambda: len(log.first_deliveries(counter)) >= 10)

    assert log.first_deliveries(counter) == list(range(1, 11))


async def test_a_relay_that_dies_within_a_large_window_goes_on_in_it(
    store: EventStore[Counted], start_relay: StartRelay, kafka_servers: str
) -> None:
    counter, count = new_id(), 2 * ROWS_MAX + 7
    for start in range(1, count + 1, 1_000):
        await add(store, counter, start, min(1_000, count + 1 - start))
    async with kafka_log(kafka_servers) as log:
        doomed = start_relay(Failpoint.PAGE_ACKNOWLEDGED)
        assert await asyncio.to_thread(doomed.wait, DEADLINE_SECONDS) == -signal.SIGKILL
        start_relay()
        await log.until(lambda: len(log.first_deliveries(counter)) >= count)

    assert log.first_deliveries(counter) == list(range(1, count + 1))
    assert len(log.numbers[str(counter)]) > count, "the page before the crash is sent again"


async def test_a_standby_takes_over_from_a_frozen_relay_which_then_ends_itself(
    store: EventStore[Counted], start_relay: StartRelay, pool: asyncpg.Pool, kafka_servers: str
) -> None:
    counter = new_id()
    async with kafka_log(kafka_servers) as log:
        frozen = start_relay()
        await add(store, counter, 1, 3)
        await log.until(lambda: len(log.numbers[str(counter)]) >= 3)

        frozen.send_signal(signal.SIGSTOP)
        start_relay()
        await add(store, counter, 4, 3)
        await log.until(lambda: len(log.first_deliveries(counter)) >= 6)
        frozen.send_signal(signal.SIGCONT)

        assert await asyncio.to_thread(frozen.wait, LEASE_AND_MORE_SECONDS) == EXIT_FENCED
        await add(store, counter, 7, 3)
        await log.until(lambda: len(log.first_deliveries(counter)) >= 9)

    assert log.first_deliveries(counter) == list(range(1, 10))
    assert await pool.fetchval("SELECT epoch FROM relay") == 2


async def test_a_relay_that_loses_its_database_goes_on_when_it_is_back(
    store: EventStore[Counted], start_relay: StartRelay, pool: asyncpg.Pool, kafka_servers: str
) -> None:
    counter = new_id()
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE $1"
    async with kafka_log(kafka_servers) as log:
        start_relay()
        for number in range(1, 4):
            await add(store, counter, number, 1)
            await log.until(lambda: len(log.first_deliveries(counter)) >= number)  # noqa: B023
            await pool.fetch(cut, "test-relay-%")

    assert log.first_deliveries(counter) == [1, 2, 3]


async def test_a_relay_that_waits_for_its_outbox_keeps_its_lease(
    store: EventStore[Counted],
    start_relay: StartRelay,
    pool: asyncpg.Pool,
    kafka_servers: str,
    tmp_path: Path,
) -> None:
    """Neither a long poll nor the partitions delay a renewal, or count as an unavailable database.

    Such a poll is one of a backlog of millions; here another connection holds a lock.
    """
    counter = new_id()
    async with kafka_log(kafka_servers) as log:
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE")
            relay = start_relay()
            while not await pool.fetchval("SELECT epoch FROM relay"):
                await asyncio.sleep(0.05)
            await asyncio.sleep(LEASE_SECONDS + 1)
        await add(store, counter, 1, 1)
        await log.until(lambda: len(log.numbers[str(counter)]) >= 1)

    assert relay.poll() is None
    assert await pool.fetchval("SELECT epoch FROM relay") == 1
    assert "away" not in (tmp_path / "complaints").read_text()


async def test_an_asked_stop_publishes_what_is_committed(
    store: EventStore[Counted], start_relay: StartRelay, pool: asyncpg.Pool, kafka_servers: str
) -> None:
    counter = new_id()
    async with kafka_log(kafka_servers) as log:
        relay = start_relay()
        await add(store, counter, 1, 1)
        await log.until(lambda: len(log.numbers[str(counter)]) >= 1)
        await add(store, counter, 2, 500)
        relay.terminate()
        assert await asyncio.to_thread(relay.wait, LEASE_AND_MORE_SECONDS) == 0
        await log.until(lambda: len(log.numbers[str(counter)]) >= 501)

    assert log.numbers[str(counter)] == list(range(1, 502))
    assert await pool.fetchval("SELECT owner IS NULL FROM relay"), "the lease is given back"


async def test_an_asked_stop_does_not_wait_for_a_broker_that_is_away(
    store: EventStore[Counted], start_relay_at: StartRelayAt, pool: asyncpg.Pool
) -> None:
    await add(store, new_id(), 1, 1)
    relay = start_relay_at("127.0.0.1:9")
    async with asyncio.timeout(DEADLINE_SECONDS):
        while await pool.fetchval("SELECT owner FROM relay") is None:
            await asyncio.sleep(0.05)

    relay.terminate()

    assert await asyncio.to_thread(relay.wait, LEASE_AND_MORE_SECONDS) == 0
    assert await pool.fetchval("SELECT owner IS NULL FROM relay"), "the lease is given back"
    assert await pool.fetchval("SELECT published_xmax::text FROM relay") == "0"


async def test_a_record_carries_exactly_one_traceparent(
    store: EventStore[Counted], start_relay: StartRelay, kafka_servers: str
) -> None:
    from opentelemetry.sdk.trace import TracerProvider

    counter = new_id()
    async with kafka_log(kafka_servers) as log:
        start_relay()
        with TracerProvider().get_tracer("test").start_as_current_span("request") as span:
            await add(store, counter, 1, 1)
        await log.until(lambda: len(log.numbers[str(counter)]) >= 1)

    [traceparent] = [value for name, value in log.headers[str(counter)] if name == "traceparent"]
    assert format(span.get_span_context().trace_id, "032x") in traceparent.decode()


async def test_a_checkpoint_of_another_cluster_is_refused(
    start_relay: StartRelay, pool: asyncpg.Pool, tmp_path: Path
) -> None:
    """Transaction ids of another cluster would make the relay skip or repeat at random."""
    await pool.execute("UPDATE relay SET system_identifier = 1, published_xmax = '99999'")

    relay = start_relay()

    assert await asyncio.to_thread(relay.wait, LEASE_AND_MORE_SECONDS) == 1
    complaint = (tmp_path / "complaints").read_text()
    assert "does not start: The checkpoint is of another cluster" in complaint
