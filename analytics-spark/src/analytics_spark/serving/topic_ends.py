"""The end offsets of the topics, fetched from Kafka at most once a second."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from analytics_spark.job.checkpoint import Offsets
from shared.messaging import reading
from shared.messaging.topics import TOPICS, list_partitions
from shared.runtime.brokers import Brokers
from shared.runtime.logs import because

log = logging.getLogger(__name__)

ANSWER_TIMEOUT_SECONDS = 2
FRESH_SECONDS = 1.0

PARTITIONS = list_partitions(
    topic.name for topic in TOPICS.values() if "analytics-job" in topic.readers
)


class TopicEnds:
    """A client of Kafka, which can be unavailable, also at the start; the next call retries."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._consumer: AIOKafkaConsumer | None = None
        self._lock = asyncio.Lock()
        self._known: Offsets | None = None
        self._known_at = float("-inf")

    async def current(self) -> Offsets | None:
        """End offsets of all partitions; None when Kafka does not respond within the time-out."""
        async with self._lock:
            if time.monotonic() - self._known_at > FRESH_SECONDS:
                self._known = await self._fetch()
                self._known_at = time.monotonic()
            return self._known

    async def _fetch(self) -> Offsets | None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
                if self._consumer is None:
                    await self._connect()
                assert self._consumer is not None
                ends = await self._consumer.end_offsets(PARTITIONS)
        except (KafkaError, TimeoutError) as error:
            log.warning("cannot read the end offsets of the topics", extra=because(error))
            return None
        offsets: Offsets = {}
        for topic, partition in PARTITIONS:
            end = ends[TopicPartition(topic, partition)]
            offsets.setdefault(topic, {})[str(partition)] = end
        return offsets

    async def _connect(self) -> None:
        consumer = reading.create_client(self._brokers, client_id="analytics-api")
        try:
            await consumer.start()
        except BaseException:
            await consumer.stop()
            raise
        self._consumer = consumer

    async def close(self) -> None:
        if self._consumer is not None:
            await self._consumer.stop()


@asynccontextmanager
async def open_topic_ends(brokers: Brokers) -> AsyncIterator[TopicEnds]:
    ends = TopicEnds(brokers)
    try:
        yield ends
    finally:
        await ends.close()
