"""Spark's source of the three topics: what a batch reads, and its records, packed in Python.

Spark's own source of Kafka makes a row of each record in Java, which costs more than all that is
done with it afterwards.
"""

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from aiokafka import TopicPartition
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from analytics_spark.job.log_reader import LogReader, Offsets, Range
from analytics_spark.job.pack import PACKED, pack
from analytics_spark.job.records import HEADERS, has_type_of, select
from analytics_spark.job.topics import ITEMS, ORDERS, USERS
from shared.messaging.log_ends import SETTLED_POLL_SECONDS, SETTLED_SECONDS_MAX, find_loss
from shared.runtime.brokers import read_client_options

TOPICS = {topic.name: topic for topic in (USERS, ITEMS, ORDERS)}
CLIENT_ID = "analytics-job"

TASKS_MAX = 2
"""Few tasks: a dozen small ones cost a quarter more than four."""
RECORDS_OF_A_TASK_MIN = 5_000
"""Fewer records are read in one task: a second one costs more than it saves."""

PlainOffsets = dict[str, dict[str, int]]
"""By topic and partition, as Spark stores them."""


class ShopTopics(DataSource):
    """Options: `brokers` (`Brokers.to_text`), `buckets`, and the limits of a batch: `orders_max`
    records of orders, `tables_max` of each other topic, empty for none."""

    @classmethod
    def name(cls) -> str:
        return "shop-topics"

    def schema(self) -> str:
        return PACKED

    def streamReader(self, schema: StructType) -> "TopicsReader":
        return TopicsReader(self.options)


class Share(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        self.ranges = ranges


class TopicsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads each topic from its beginning. Nothing that was read before may be lost."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._brokers = options["brokers"]
        self._buckets = int(options["buckets"])
        orders_max, tables_max = options["orders_max"], options["tables_max"]
        self._limits = {
            topic: int(limit)
            for topic in TOPICS
            if (limit := orders_max if topic == ORDERS.name else tables_max)
        }
        self._last: Offsets | None = None

    def initialOffset(self) -> PlainOffsets:
        return to_plain(self._reader.get_begins(list(TOPICS)))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._limits[ORDERS.name])

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._reader.get_ends(list(TOPICS))

    def latestOffset(self, start: PlainOffsets, limit: ReadLimit) -> PlainOffsets:
        """Where the next batch ends.

        Raises:
            RecordsLost: a log ends before `start`.
        """
        begins = from_plain(start)
        ends = self._get_ends(begins)
        if not isinstance(limit, ReadAllAvailable):
            ends = limit_ends(begins, ends, self._limits)
        return to_plain(ends)

    def partitions(self, start: PlainOffsets, end: PlainOffsets) -> Sequence[InputPartition]:
        begins = from_plain(start)
        ranges = [
            # A partition that is new has all of its records.
            Range(partition=partition, first=begins.get(partition, 0), end=offset)
            for partition, offset in from_plain(end).items()
        ]
        return [Share(each) for each in share(ranges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        for topic in TOPICS.values():
            ranges = [each for each in partition.ranges if each.partition.topic == topic.name]
            records = self._reader.read(ranges, HEADERS, partial(has_type_of, topic))
            selected = (select(each, self._buckets) for each in records)
            yield from pack(selected, topic=topic, buckets=self._buckets)

    @property
    def _reader(self) -> LogReader:
        return get_log_reader(self._brokers)

    def _get_ends(self, reached: Offsets) -> Offsets:
        deadline = time.monotonic() + SETTLED_SECONDS_MAX
        while True:
            ends = self._last or self._reader.get_ends(list(TOPICS))
            loss = find_loss(ends, reached)
            if loss is None:
                return ends
            if time.monotonic() > deadline:
                raise loss
            time.sleep(SETTLED_POLL_SECONDS)


@functools.cache
def get_log_reader(brokers: str) -> LogReader:
    """One for each process: a worker has the next task soon."""
    return LogReader(read_client_options(brokers), CLIENT_ID)


def limit_ends(
    begins: Offsets, ends: Offsets, limits: Mapping[str, int]
) -> dict[TopicPartition, int]:
    """The ends of a batch that has at most so many records of a topic, in proportion to what each
    of its partitions has."""
    waiting = {each: end - begins.get(each, 0) for each, end in ends.items()}
    limited = dict(ends)
    for topic, limit in limits.items():
        of_topic = {each: count for each, count in waiting.items() if each.topic == topic}
        total = sum(of_topic.values())
        if total <= limit:
            continue
        for each, count in of_topic.items():
            part = max(count * limit // total, min(count, 1))
            limited[each] = begins.get(each, 0) + part
    return limited


def share(ranges: Sequence[Range]) -> list[list[Range]]:
    """The ranges for each task, of about as many records."""
    total = sum(each.end - each.first for each in ranges)
    tasks = max(1, min(TASKS_MAX, total // RECORDS_OF_A_TASK_MIN))
    size = -(-total // tasks)
    shares: list[list[Range]] = [[] for _ in range(tasks)]
    filled = 0
    for each in ranges:
        first = each.first
        while first < each.end:
            end = min(each.end, first + size - filled % size)
            shares[filled // size].append(Range(partition=each.partition, first=first, end=end))
            filled += end - first
            first = end
    return [each for each in shares if each]


def to_plain(offsets: Offsets) -> PlainOffsets:
    plain: PlainOffsets = {}
    for partition, offset in sorted(offsets.items()):
        plain.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return plain


def from_plain(plain: PlainOffsets) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(number)): offset
        for topic, offsets in plain.items()
        for number, offset in offsets.items()
    }


def get_options(
    brokers: str, buckets: int, orders_max: int, tables_max: int | None
) -> dict[str, Any]:
    return {
        "brokers": brokers,
        "buckets": buckets,
        "orders_max": orders_max,
        "tables_max": "" if tables_max is None else tables_max,
    }
