"""What the topic of the counters holds from some moment on."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

from aiokafka import AIOKafkaConsumer, TopicPartition

from shared.messaging.topics import TOPICS
from test_support.counter.counter import TOPIC
from test_support.waits import HANGS_AFTER_SECONDS


class Log:
    """What stands in Kafka from now on, by key; other tests' keys are there too."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self.consumer = consumer
        self.numbers: dict[str, list[int]] = defaultdict(list)
        self.headers: dict[str, list[tuple[str, bytes]]] = {}
        self.timestamps: dict[str, int] = {}

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while not done():
                batches = await self.consumer.getmany(timeout_ms=200)
                for records in batches.values():
                    for record in records:
                        key = record.key.decode()
                        self.numbers[key].append(json.loads(record.value)["number"])
                        self.headers[key] = list(record.headers)
                        self.timestamps[key] = record.timestamp

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
