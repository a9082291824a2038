"""The topic of a run: the broker stamps its records, and a consumer of its own reads them."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import NewTopic
from aiokafka.structs import ConsumerRecord

from shared.messaging.topics import DOMAIN_TOPIC, list_partitions
from test_support.kafka_admin import create_topics
from verification.stress.ledger import CODEC, TOPIC, Delivery, Entry, digest

POLL_MILLISECONDS = 200
PARTITIONS = list_partitions([TOPIC])

STAMPED_BY_BROKER = {"message.timestamp.type": "LogAppendTime"}
"""The broker sets the time of delivery, so a busy reader cannot make it look late."""


async def create_topic(servers: str) -> None:
    configuration = DOMAIN_TOPIC | STAMPED_BY_BROKER
    await create_topics(servers, NewTopic(TOPIC, len(PARTITIONS), 1, topic_configs=configuration))


class DeliveryReader:
    """Reads all that is written from now on; `deliveries` are in the order of each partition."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self.deliveries: list[Delivery] = []

    async def read(self) -> bool:
        """Read what has arrived; False when there was nothing."""
        batches = await self._consumer.getmany(timeout_ms=POLL_MILLISECONDS)
        for records in batches.values():
            self.deliveries += map(to_delivery, records)
        return bool(batches)

    async def read_until(self, is_complete: Callable[[], bool], patience_seconds: float) -> None:
        """Read until all have arrived, or none arrived for `patience_seconds`."""
        last_at = time.monotonic()
        while not is_complete() and time.monotonic() - last_at < patience_seconds:
            if await self.read():
                last_at = time.monotonic()

    async def read_to_end(self) -> None:
        """Read everything that the broker has."""
        ends = await self._consumer.end_offsets(PARTITIONS)
        while any([await self._consumer.position(each) < ends[each] for each in PARTITIONS]):
            await self.read()


@asynccontextmanager
async def open_reader(servers: str) -> AsyncIterator[DeliveryReader]:
    """A reader at the present end of the topic."""
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="none")
    await consumer.start()
    try:
        consumer.assign(PARTITIONS)
        for partition, end in (await consumer.end_offsets(PARTITIONS)).items():
            consumer.seek(partition, end)
        yield DeliveryReader(consumer)
    finally:
        await consumer.stop()


def to_delivery(record: ConsumerRecord) -> Delivery:
    event = CODEC.decode("linked", record.value, 1)
    entry = Entry(stream_id=event.stream_id, version=event.version, digest=digest(record.value))
    return Delivery(entry=entry, predecessor=event.predecessor, at=record.timestamp / 1000)
