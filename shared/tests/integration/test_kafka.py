"""A producer is replaced before and after it would be useless; no write waits indefinitely."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from shared.messaging import kafka, wire
from shared.messaging.kafka import NoSuchPartition, NotAcknowledged, Publisher
from shared.messaging.wire import OutgoingRecord
from shared.runtime.brokers import Brokers
from test_support.waits import HANGS_AFTER_SECONDS

TOPIC, PARTITION = "users.v1", 3
SEQUENCE_MAX = 2**31 - 1


def records(*values: bytes) -> list[OutgoingRecord]:
    return [OutgoingRecord(TOPIC, PARTITION, b"key", value, wire.pack([]), 0) for value in values]


def nothing() -> None:
    """No callback is needed when the client has the records."""


@pytest.fixture
async def publisher(kafka_servers: str) -> AsyncIterator[Publisher]:
    publisher = Publisher(Brokers(kafka_servers), "test", {})
    yield publisher
    await publisher.close()


@pytest.fixture
def almost_worn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every new producer is five records before the end of its sequence numbers."""
    new: Callable[[Brokers, str], AIOKafkaProducer] = kafka.create_producer

    def worn(brokers: Brokers, client_id: str) -> AIOKafkaProducer:
        client = new(brokers, client_id)
        target = TopicPartition(TOPIC, PARTITION)
        client._txn_manager._sequence_numbers[target] = SEQUENCE_MAX - 4
        return client

    monkeypatch.setattr(kafka, "create_producer", worn)


async def publish_ten(publisher: Publisher) -> list[int]:
    offsets = []
    for _ in range(10):
        [batch] = await publisher.publish(records(b"{}"), nothing)
        offsets.append(batch.base_offset)
    return offsets


@pytest.mark.usefixtures("almost_worn")
async def test_a_producer_is_replaced_before_its_sequence_wraps(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "RECORDS_PER_PRODUCER_MAX", 3)

    offsets = await publish_ten(publisher)

    assert offsets == list(range(offsets[0], offsets[0] + 10))


@pytest.mark.usefixtures("almost_worn")
async def test_a_sequence_that_wraps_is_refused_by_the_broker(publisher: Publisher) -> None:
    """The negative control, and the reason: delete the rotation when this test turns red."""
    with pytest.raises(KafkaError):
        await publish_ten(publisher)


async def test_a_topic_with_fewer_partitions_than_before_is_reported_in_one_line(
    publisher: Publisher,
) -> None:
    """The relay tries again until the topic has them again; others are published meanwhile."""
    record = OutgoingRecord(TOPIC, 99, b"key", b"{}", wire.pack([]), 0)

    with pytest.raises(NotAcknowledged) as refusal:
        await publisher.publish([record, *records(b"{}")], nothing)

    [(target, error)] = refusal.value.errors.items()
    assert target == (TOPIC, 99)
    assert isinstance(error, NoSuchPartition)
    assert re.match(r"NoSuchPartition: .* has \d+ partitions, and no number 99: give", str(error))
    assert sum(batch.count for batch in refusal.value.batches) == len(records(b"{}"))


async def test_a_broker_whose_clock_is_an_hour_behind_takes_records(publisher: Publisher) -> None:
    """A record of now is more than an hour ahead of it; its default is to refuse that."""
    later = time.time_ns() // 1_000_000 + 70 * 60 * 1000
    [record] = records(b"{}")

    await publisher.publish([record._replace(milliseconds=later)], nothing)


async def test_after_a_refused_batch_another_producer_goes_on(publisher: Publisher) -> None:
    await publisher.publish(records(b"{}"), nothing)
    with pytest.raises(KafkaError):
        await publisher.publish(records(b"x" * 5_000_000), nothing)

    await publisher.publish(records(b"{}"), nothing)


async def test_after_a_refused_batch_the_same_producer_is_refused_for_ever(
    kafka_servers: str,
) -> None:
    """The negative control."""
    client = kafka.create_producer(Brokers(kafka_servers), "test")
    await client.start()
    try:
        await kafka.publish(client, records(b"{}"))
        with pytest.raises(KafkaError):
            await kafka.publish(client, records(b"x" * 5_000_000))
        with pytest.raises(KafkaError):
            await kafka.publish(client, records(b"{}"))
    finally:
        await kafka.close(client)


async def test_a_record_for_a_partition_that_is_gone_is_refused_with_the_reason(
    publisher: Publisher,
) -> None:
    """As an error of Kafka, which the relay reports and tries again; any other would end it."""
    beyond = OutgoingRecord(TOPIC, 99, b"key", b"{}", wire.pack([]), 0)

    with pytest.raises(KafkaError, match=f"{TOPIC} has 4 partitions, and no number 99"):
        await publisher.publish([beyond], nothing)

    await publisher.publish(records(b"{}"), nothing)


async def test_a_producer_can_be_closed_as_soon_as_it_is_started(kafka_servers: str) -> None:
    for _ in range(3):
        client = kafka.create_producer(Brokers(kafka_servers), "test")
        await client.start()
        await kafka.close(client)


async def test_a_single_record_that_is_never_acknowledged_is_an_error_in_time(
    kafka_servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client would retry indefinitely, and no check would show the dead letter's failure."""

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(kafka, "publish", never)
    monkeypatch.setattr(kafka, "WRITE_SECONDS_MAX", 2.0)
    write = kafka.create_writer(Brokers(kafka_servers), "test")

    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        with pytest.raises(TimeoutError):
            await write(records(b"value"))
