"""Reads ranges of Kafka's logs as Arrow tables, and where the logs end, for one thread that waits.

There is no group: Spark's checkpoint has the offsets.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    NoError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest

from analytics_spark.job.record_batches import Batch, split, to_table
from analytics_spark.job.versions import Mask
from shared.messaging.log_ends import RecordsLost

T = TypeVar("T")

FETCH_BYTES_MAX = 16 * 1024 * 1024
PARTITION_BYTES_MAX = 4 * 1024 * 1024
"""Of one fetch. A batch that is larger is fetched all the same."""
FETCH_WAIT_MAX_MILLISECONDS = 20
"""How long the broker can hold a fetch. All that is fetched is there already."""
REQUEST_TIMEOUT_MILLISECONDS = 10_000
METADATA_AGE_MAX_MILLISECONDS = 60_000
"""How long a partition that is added to a topic can stay unknown."""
OUTAGE_SECONDS_MAX = 60.0
"""How long requests are repeated that fail, or records are awaited. Then the query ends."""
RETRY_SECONDS = 0.1

READ_COMMITTED = 1
CONSUMER = -1
"""What a reader that is no replica has as its number."""
BEGINNING, END = -2, -1
"""The times that ask for the first offset, and for the one after the last committed record."""

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Records of a partition; `end` is not included."""

    partition: TopicPartition
    first: int
    end: int


class LogReader:
    """A connection to Kafka. `options` are those of aiokafka's clients.

    Raises:
        KafkaError: no broker answered for OUTAGE_SECONDS_MAX. So all methods.
    """

    def __init__(self, options: Mapping[str, Any], client_id: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._options = {
            **options,
            "client_id": client_id,
            "request_timeout_ms": REQUEST_TIMEOUT_MILLISECONDS,
            "metadata_max_age_ms": METADATA_AGE_MAX_MILLISECONDS,
        }
        self._client: AIOKafkaClient | None = None

    def close(self) -> None:
        if self._client is not None:
            self._loop.run_until_complete(self._client.close())
        self._loop.close()

    def get_begins(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        """The first offsets of all partitions of the topics."""
        return self._repeat(partial(list_offsets, topics=topics, when=BEGINNING))

    def get_ends(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        """The offsets after the last committed records."""
        return self._repeat(partial(list_offsets, topics=topics, when=END))

    def read(
        self,
        ranges: Sequence[Range],
        headers: Sequence[str],
        is_wanted: Callable[[pa.Table], Mask],
    ) -> Iterator[pa.Table]:
        """The records of `ranges`, each table of one partition, in its order.

        A table has the columns of `record_batches.to_table`, and `partition`.

        Raises:
            RecordsLost: the log does not have these offsets.
            TimeoutError: no record came for OUTAGE_SECONDS_MAX.
            CorruptRecordException, UnsupportedCodecError: see `record_batches.split`.
        """
        missing = {each.partition: each for each in ranges if each.first < each.end}
        progressed_at = time.monotonic()
        while missing:
            wanted = list(missing.values())
            for found, chunk, aborted in self._repeat(partial(fetch, ranges=wanted)):
                batches = list(split(chunk, aborted))
                if not batches:
                    continue
                progressed_at = time.monotonic()
                yield read_range(found, batches, headers, is_wanted)
                missing[found.partition] = replace(found, first=batches[-1].next_offset)
                if batches[-1].next_offset >= found.end:
                    del missing[found.partition]
            if time.monotonic() - progressed_at > OUTAGE_SECONDS_MAX:
                raise TimeoutError(f"no records came for {OUTAGE_SECONDS_MAX:.0f} s: {wanted}")

    def _repeat(self, request: Callable[[AIOKafkaClient], Awaitable[T]]) -> T:
        """The answer to a request, which is repeated while a broker does not run."""
        return self._loop.run_until_complete(self._repeat_request(request))

    async def _repeat_request(self, request: Callable[[AIOKafkaClient], Awaitable[T]]) -> T:
        deadline = time.monotonic() + OUTAGE_SECONDS_MAX
        while True:
            try:
                if self._client is None:
                    client = AIOKafkaClient(**self._options)
                    await client.bootstrap()
                    self._client = client
                return await request(self._client)
            except KafkaError as error:
                if not error.retriable or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(RETRY_SECONDS)
            if self._client is not None:
                await self._client.force_metadata_update()


def read_range(
    wanted: Range,
    batches: Sequence[Batch],
    headers: Sequence[str],
    is_wanted: Callable[[pa.Table], Mask],
) -> pa.Table:
    """The records of a range: a fetch has whole batches."""

    def is_inside(heads: pa.Table) -> Mask:
        offset = heads["offset"].to_numpy()
        inside: Mask = (offset >= wanted.first) & (offset < wanted.end) & is_wanted(heads)
        return inside

    records = to_table(batches, headers, is_inside)
    partition = np.full(records.num_rows, wanted.partition.partition, np.int32)
    return records.append_column("partition", pa.array(partition))


async def list_offsets(
    client: AIOKafkaClient, topics: Sequence[str], when: int
) -> dict[TopicPartition, int]:
    await client.set_topics(topics)
    partitions = []
    for topic in topics:
        numbers = client.cluster.partitions_for_topic(topic)
        if not numbers:
            raise UnknownTopicOrPartitionError(topic)
        partitions += [TopicPartition(topic, number) for number in sorted(numbers)]
    found = {}
    for node, group in group_by_leader(client, partitions).items():
        wanted = group_by_topic({each: (each.partition, when) for each in group})
        answer = await client.send(node, OffsetRequest(CONSUMER, READ_COMMITTED, wanted))
        for topic, offsets in answer.topics:
            for number, error_code, _, offset in offsets:
                require_no_error(error_code)
                found[TopicPartition(topic, number)] = offset
    return {partition: found[partition] for partition in partitions}


async def fetch(
    client: AIOKafkaClient, ranges: Sequence[Range]
) -> list[tuple[Range, bytes, list[tuple[int, int]]]]:
    """What the brokers return of each range: batches in bytes, and aborted transactions.

    Raises:
        RecordsLost: a log does not have these offsets.
    """
    by_partition = {each.partition: each for each in ranges}
    await client.set_topics(sorted({each.topic for each in by_partition}))
    found = []
    for node, group in group_by_leader(client, list(by_partition)).items():
        wanted = group_by_topic(
            {
                each: (each.partition, by_partition[each].first, PARTITION_BYTES_MAX)
                for each in group
            }
        )
        answer = await client.send(
            node,
            FetchRequest(FETCH_WAIT_MAX_MILLISECONDS, 1, FETCH_BYTES_MAX, READ_COMMITTED, wanted),
        )
        for topic, parts in answer.topics:
            for number, error_code, high_watermark, *others in parts:
                range_ = by_partition[TopicPartition(topic, number)]
                if for_code(error_code) is OffsetOutOfRangeError:
                    raise RecordsLost.in_partition(range_.partition, high_watermark, range_.first)
                require_no_error(error_code)
                chunk, aborted = others[-1], others[2] if len(others) > 4 else others[-2]
                found.append((range_, chunk or b"", aborted or []))
    return found


def group_by_leader(
    client: AIOKafkaClient, partitions: Sequence[TopicPartition]
) -> Mapping[int, list[TopicPartition]]:
    """Raises LeaderNotAvailableError."""
    groups = defaultdict(list)
    for partition in partitions:
        leader = client.cluster.leader_for_partition(partition)
        if leader is None or leader == -1:
            raise LeaderNotAvailableError(partition)
        groups[leader].append(partition)
    return groups


def group_by_topic(wanted: Mapping[TopicPartition, T]) -> list[tuple[str, list[T]]]:
    topics = defaultdict(list)
    for partition, each in wanted.items():
        topics[partition.topic].append(each)
    return list(topics.items())


def require_no_error(error_code: int) -> None:
    error = for_code(error_code)
    if error is not NoError:
        raise error()
