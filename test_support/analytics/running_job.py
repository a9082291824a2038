"""The streaming query on real servers, driven by a test."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

import psycopg
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.structs import ConsumerRecord
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark.job import dead_letters, job, query, sink, writer
from analytics_spark.job.generations import FIRST, Generation
from analytics_spark.settings import JobSettings
from shared.messaging.topics import TOPICS, list_partitions
from test_support.analytics.histories import Event
from test_support.kafka_admin import admin_client
from test_support.topic_records import read_to_end
from test_support.waits import HANGS_AFTER_SECONDS

POLL_SECONDS = 0.05

PARTITIONS = list_partitions(TOPICS)
LETTERS = [
    TopicPartition(topic.dead_letters_of(dead_letters.READER), partition)
    for topic in TOPICS.values()
    if dead_letters.READER in topic.readers
    for partition in range(topic.partitions)
]

READ_HOUR = """
    SELECT count(DISTINCT user_id), coalesce(sum(purchases), 0)::int,
        coalesce(sum(quantity), 0)::int, coalesce(sum(cents), 0)::int
    FROM cells
    WHERE hour = %s AND user_id <> ''
"""

READ_OFFSETS = "SELECT offsets FROM batches ORDER BY batch_id DESC LIMIT 1"

Sink = Callable[[DataFrame, int], None]


class RunningJob:
    """Starts, stops and feeds the query; `wrap` may put something around its sink."""

    def __init__(
        self,
        spark: SparkSession,
        settings: JobSettings,
        reader: psycopg.Connection,
        generation: Generation = FIRST,
    ) -> None:
        self._checkpoint = generation.get_checkpoint(settings.checkpoint_dir)
        self._spark = spark
        self._settings = settings.model_copy(update={"checkpoint_dir": self._checkpoint.path})
        self._reader = reader
        self._generation = generation
        self._running: StreamingQuery | None = None

    def read(self, *events: Event, wrap: Callable[[Sink], Sink] = lambda plain: plain) -> None:
        """Publish the events, and run the query until they are committed, if it does not run.

        A sink that fails is waited for, so that it has failed even after its commit.
        """
        sent = publish(self._settings.kafka_bootstrap_servers, events)
        if self._running is not None:
            self._wait_for(sent, self._running)
            return
        with self.running(wrap) as running:
            self._wait_for(sent, running)

    @contextmanager
    def running(
        self, wrap: Callable[[Sink], Sink] = lambda plain: plain
    ) -> Iterator[StreamingQuery]:
        """All that is read inside, one and the same query reads: a start takes seconds."""
        dsn, checkpoint = self._settings.database_dsn, self._checkpoint
        buckets, generation = self._settings.buckets, self._generation
        own = job.fit(self._settings, checkpoint)
        with writer.open_lasting_writer(dsn, checkpoint, buckets, generation) as opened:
            frame = query.outcomes(self._spark, own)
            write_dead_letter = partial(dead_letters.write_dead_letter, self._settings.brokers)
            write = wrap(sink.make_sink(opened, checkpoint, buckets, write_dead_letter, generation))
            self._running = query.start(frame, write, own)
            try:
                yield self._running
            finally:
                self._running.stop()
                self._running = None

    def hour(self, hour: datetime) -> tuple[Any, ...]:
        """Local buyers, purchases, quantity and cents of an hour."""
        row = self._reader.execute(READ_HOUR, [hour]).fetchone()
        assert row is not None
        return row

    def dead_letters(self) -> list[ConsumerRecord]:
        """The dead letters that the job wrote of the current records of the topics."""
        return asyncio.run(read_to_end(self._settings.kafka_bootstrap_servers, LETTERS))

    def epoch(self, column: str) -> Any:
        row = self._reader.execute(f"SELECT {column} FROM epochs").fetchone()
        assert row is not None
        return row[0]

    def _wait_for(self, sent: dict[TopicPartition, int], running: StreamingQuery) -> None:
        deadline = time.monotonic() + HANGS_AFTER_SECONDS
        while not self._committed(sent):
            error = running.exception()
            if error is not None:
                raise error
            assert time.monotonic() < deadline, f"{sent} was not committed"
            time.sleep(POLL_SECONDS)
        running.processAllAvailable()

    def _committed(self, sent: dict[TopicPartition, int]) -> bool:
        row = self._reader.execute(READ_OFFSETS).fetchone()
        offsets = row[0] if row else {}
        return all(
            offsets.get(topic, {}).get(str(partition), [0, 0])[1] > offset
            for (topic, partition), offset in sent.items()
        )


class Lent:
    """A session for a command that stops it at its end: the stop is ignored."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        pass


def publish(servers: str, events: Sequence[Event]) -> dict[TopicPartition, int]:
    """Send the events in their order; give the last offset of each partition."""
    return asyncio.run(publish_all(servers, events))


async def publish_all(servers: str, events: Sequence[Event]) -> dict[TopicPartition, int]:
    sent: dict[TopicPartition, int] = {}
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for event in events:
            record = await producer.send_and_wait(
                event.topic, event.value, key=event.key.encode(), headers=event.headers
            )
            sent[TopicPartition(record.topic, record.partition)] = record.offset
    return sent


async def empty_topics(servers: str) -> None:
    """Delete all records, so that a new query begins with what a test publishes."""
    async with AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
        ends = await consumer.end_offsets(PARTITIONS + LETTERS)
    async with admin_client(servers) as admin:
        await admin.delete_records(
            {partition: RecordsToDelete(before_offset=end) for partition, end in ends.items()}
        )
