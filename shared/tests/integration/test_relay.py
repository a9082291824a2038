"""From outbox to Kafka: nothing lost, each key in order, duplicates only after a crash."""

import asyncio
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from shared.eventsourcing import event_store
from shared.eventsourcing.event_store import EventStore
from shared.inbox import parked
from shared.inbox.parked import OperatorAction
from shared.messaging.messages import PublicEvent, StreamKey
from shared.outbox.lease import LEASE_SECONDS
from shared.outbox.relay import ROWS_MAX
from shared.outbox.relay_process import EXIT_FENCED
from shared.runtime.failpoints import Failpoint
from shared.runtime.identifiers import new_id
from test_support.counter import counter as counters_room
from test_support.counter.counter import CODEC, TOPIC, Counted, counted, some_metadata, store_of
from test_support.counter.kafka_log import kafka_log
from test_support.counter.relays import StartRelay, StartRelayAt
from test_support.waits import HANGS_AFTER_SECONDS


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
        assert await asyncio.to_thread(doomed.wait, HANGS_AFTER_SECONDS) == -signal.SIGKILL
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
        assert await asyncio.to_thread(doomed.wait, HANGS_AFTER_SECONDS) == -signal.SIGKILL
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

        assert await asyncio.to_thread(frozen.wait, HANGS_AFTER_SECONDS) == EXIT_FENCED
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
    assert "unavailable" not in (tmp_path / "complaints.log").read_text()


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
        assert await asyncio.to_thread(relay.wait, HANGS_AFTER_SECONDS) == 0
        await log.until(lambda: len(log.numbers[str(counter)]) >= 501)

    assert log.numbers[str(counter)] == list(range(1, 502))
    assert await pool.fetchval("SELECT owner IS NULL FROM relay"), "the lease is given back"


async def test_an_asked_stop_does_not_wait_for_a_broker_that_is_away(
    store: EventStore[Counted], start_relay_at: StartRelayAt, pool: asyncpg.Pool
) -> None:
    await add(store, new_id(), 1, 1)
    relay = start_relay_at("127.0.0.1:9")
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while await pool.fetchval("SELECT owner FROM relay") is None:
            await asyncio.sleep(0.05)

    relay.terminate()

    assert await asyncio.to_thread(relay.wait, HANGS_AFTER_SECONDS) == 0
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

    assert await asyncio.to_thread(relay.wait, HANGS_AFTER_SECONDS) == 1
    complaint = (tmp_path / "complaints.log").read_text()
    assert "does not start: The outbox is of another cluster" in complaint


async def test_an_event_from_a_clock_hours_ahead_is_stamped_with_the_time_of_the_database(
    pool: asyncpg.Pool, start_relay: StartRelay, kafka_servers: str
) -> None:
    """The broker refuses a record more than an hour ahead, and would refuse it each time."""
    ahead, counter = store_of(pool, now=lambda: datetime.now(UTC) + timedelta(hours=2)), new_id()
    async with kafka_log(kafka_servers) as log:
        start_relay()
        await add(ahead, counter, 1, 1)
        await log.until(lambda: len(log.numbers[str(counter)]) >= 1)

    assert log.timestamps[str(counter)] <= datetime.now(UTC).timestamp() * 1000


LARGER_THAN_THE_BROKER_TAKES = 2_000_000
OPERATOR = OperatorAction(by="jack", reason="a test")


def publish_a_large_two(event: Counted) -> PublicEvent:
    public = counters_room.publish(event)
    return (
        replace(public, value=b" " * LARGER_THAN_THE_BROKER_TAKES) if event.number == 2 else public
    )


async def test_a_record_that_the_broker_refuses_permanently_stops_only_its_own_stream(
    pool: asyncpg.Pool,
    start_relay: StartRelay,
    kafka_servers: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_store, "MESSAGE_BYTES_MAX", LARGER_THAN_THE_BROKER_TAKES)
    large, store = store_of(pool, publish=publish_a_large_two), store_of(pool)
    refused, other = new_id(), new_id()
    for number in (1, 2, 3):
        await add(large, refused, number, 1)
        await add(store, other, number, 1)
    async with kafka_log(kafka_servers) as log:
        relay = start_relay()
        await log.until(lambda: 3 in log.numbers[str(other)])
        await add(store, refused, 4, 1)
        await add(store, other, 4, 1)
        await log.until(lambda: 4 in log.numbers[str(other)])
        [stream] = await parked.list_streams(pool, "test-relay")
        assert log.first_deliveries(refused) == [1]
        assert (stream.stream_id, stream.waiting) == (refused, 3)
        assert "MessageSizeTooLarge" in stream.reason

        relay.kill()
        start_relay()
        await add(store, refused, 5, 1)
        await add(store, other, 5, 1)
        await log.until(lambda: 5 in log.numbers[str(other)])
        async with pool.acquire() as connection, connection.transaction():
            small = CODEC.encode(Counted(counter_id=refused, number=2))
            await parked.edit(
                connection, "test-relay", StreamKey(TOPIC, refused), 2, small, OPERATOR
            )
            await parked.request_redrive(
                connection, "test-relay", StreamKey(TOPIC, refused), OPERATOR
            )
        await log.until(lambda: 5 in log.numbers[str(refused)])
        await add(store, refused, 6, 1)
        await log.until(lambda: 6 in log.numbers[str(refused)])

    assert log.first_deliveries(refused) == [1, 2, 3, 4, 5, 6]
    assert log.first_deliveries(other) == [1, 2, 3, 4, 5]
    assert await parked.list_streams(pool, "test-relay") == []
