"""Ranges of real logs: committed records only, each once, and never silently fewer."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.errors import UnknownTopicOrPartitionError

from analytics_spark.job import log_reader
from analytics_spark.job.log_reader import LogReader, Range
from shared.messaging.log_ends import RecordsLost

PARTITIONS = 2
NAMES = ("ce_type",)
KNOWN_SECONDS_MAX = 60


@pytest.fixture
def topic(kafka_servers: str) -> str:
    name = f"logs-{uuid4().hex}"
    administer(kafka_servers, lambda admin: admin.create_topics([NewTopic(name, PARTITIONS, 1)]))
    return name


@pytest.fixture
def reader(kafka_servers: str) -> Iterator[LogReader]:
    opened = LogReader({"bootstrap_servers": kafka_servers}, "test")
    yield opened
    opened.close()


def administer(servers: str, work: Callable[[AIOKafkaAdminClient], Awaitable[Any]]) -> None:
    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=servers)
        await admin.start()
        try:
            await work(admin)
        finally:
            await admin.close()

    asyncio.run(run())


@asynccontextmanager
async def producing(servers: str, **options: Any) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(bootstrap_servers=servers, **options)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def send(producer: AIOKafkaProducer, topic: str, values: list[bytes]) -> None:
    for value in values:
        await producer.send_and_wait(topic, value, partition=0, headers=[("ce_type", b"t")])


def read(reader: LogReader, topic: str, first: int, end: int, number: int = 0) -> pa.Table:
    wanted = [Range(partition=TopicPartition(topic, number), first=first, end=end)]
    return pa.concat_tables(
        reader.read(wanted, NAMES, lambda heads: np.ones(heads.num_rows, bool)),
        promote_options="default",
    )


def values(table: pa.Table) -> list[bytes]:
    found: list[bytes] = table["value"].to_pylist()
    return found


@pytest.mark.parametrize("codec", [None, "zstd", "gzip", "lz4", "snappy"])
def test_a_range_has_its_records_alone(
    kafka_servers: str, topic: str, reader: LogReader, codec: str | None
) -> None:
    sent = [b"%d" % number for number in range(10)]

    async def write() -> None:
        async with producing(kafka_servers, compression_type=codec, linger_ms=50) as producer:
            futures = [await producer.send(topic, value, partition=0) for value in sent]
            await asyncio.gather(*futures)

    asyncio.run(write())
    assert reader.get_begins([topic]) == {TopicPartition(topic, each): 0 for each in range(2)}
    assert reader.get_ends([topic]) == {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 0}
    assert values(read(reader, topic, 0, 10)) == sent
    assert values(read(reader, topic, 3, 7)) == sent[3:7]
    assert read(reader, topic, 3, 7)["offset"].to_pylist() == [3, 4, 5, 6]
    assert read(reader, topic, 3, 7)["partition"].to_pylist() == [0] * 4


def test_more_than_a_fetch_is_read_by_several(
    kafka_servers: str, topic: str, reader: LogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reader, "PARTITION_BYTES_MAX", 100)
    sent = [b"%d" % number * 200 for number in range(10)]

    async def write() -> None:
        async with producing(kafka_servers) as producer:
            await send(producer, topic, sent)

    asyncio.run(write())
    assert values(read(reader, topic, 0, 10)) == sent


def test_aborted_and_open_transactions_are_not_read(
    kafka_servers: str, topic: str, reader: LogReader
) -> None:
    async def write_and_look() -> dict[TopicPartition, int]:
        async with producing(kafka_servers, transactional_id=topic) as producer:
            async with producer.transaction():
                await send(producer, topic, [b"committed"])
            await producer.begin_transaction()
            await send(producer, topic, [b"aborted"] * 3)
            await producer.abort_transaction()
            async with producing(kafka_servers) as plain:
                await send(plain, topic, [b"plain"])
            await producer.begin_transaction()
            await send(producer, topic, [b"open"])
            ends = await asyncio.to_thread(reader.get_ends, [topic])
            await producer.abort_transaction()
        return ends

    # Two markers lie behind the transactions.
    end = asyncio.run(write_and_look())[TopicPartition(topic, 0)]
    assert end == 7
    assert values(read(reader, topic, 0, end)) == [b"committed", b"plain"]


def test_a_partition_that_is_added_becomes_known(
    kafka_servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reader, "METADATA_AGE_MAX_MILLISECONDS", 200)
    reader = LogReader({"bootstrap_servers": kafka_servers}, "test")
    assert len(reader.get_ends([topic])) == PARTITIONS
    more = {topic: NewPartitions(PARTITIONS + 1)}
    administer(kafka_servers, lambda admin: admin.create_partitions(more))

    deadline = time.monotonic() + KNOWN_SECONDS_MAX
    while len(reader.get_ends([topic])) == PARTITIONS:
        assert time.monotonic() < deadline
    reader.close()


def test_deleted_records_are_a_loss(kafka_servers: str, topic: str, reader: LogReader) -> None:
    async def write() -> None:
        async with producing(kafka_servers) as producer:
            await send(producer, topic, [b"value"] * 4)

    asyncio.run(write())
    partition = TopicPartition(topic, 0)
    until = {partition: RecordsToDelete(before_offset=3)}
    administer(kafka_servers, lambda admin: admin.delete_records(until))

    assert reader.get_begins([topic])[partition] == 3
    with pytest.raises(RecordsLost, match="run `make republish`"):
        read(reader, topic, 2, 4)
    assert values(read(reader, topic, 3, 4)) == [b"value"]


def test_records_that_do_not_come_are_an_error(
    topic: str, reader: LogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(reader.get_ends([topic]).values()) == {0}
    monkeypatch.setattr(log_reader, "OUTAGE_SECONDS_MAX", 0.2)
    with pytest.raises(TimeoutError, match="no records came"):
        read(reader, topic, 0, 1)


def test_a_topic_that_does_not_exist_is_an_error(
    reader: LogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reader, "OUTAGE_SECONDS_MAX", 0.2)
    with pytest.raises(UnknownTopicOrPartitionError):
        reader.get_ends(["missing"])
