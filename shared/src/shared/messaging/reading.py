"""How every process here reads Kafka: committed records only, whatever bytes they have.

A record of a transaction that was aborted, or is not committed yet, was never sent.

aiokafka decodes the names of headers while it iterates over the records of a batch. One name that
is not UTF-8 would stop a reader at its record for good, so `fetcher` gets another class for the
content of a fetch: it reads such a batch again, here.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, ConsumerRecord, codec
from aiokafka.consumer import fetcher
from aiokafka.record.memory_records import MemoryRecords

from shared.messaging.records import IncomingRecord
from shared.messaging.wire import (
    BATCH_BEGIN,
    BATCH_BYTES,
    BATCH_COVERED,
    LENGTH_BEGINS,
    ByteReader,
)
from shared.runtime.brokers import Brokers

COMMITTED_ONLY = "read_committed"
"""The isolation level, in the words of Kafka."""

DECOMPRESS = {
    1: codec.gzip_decode,
    2: codec.snappy_decode,
    3: codec.lz4_decode,
    4: codec.zstd_decode,
}
"""By the number of the codec in the attributes of a batch."""


def create_client(brokers: Brokers, **options: Any) -> AIOKafkaConsumer:
    """A client that reads topics; `options` are those of AIOKafkaConsumer.

    Raises:
        OSError: the certificates cannot be read.
    """
    return AIOKafkaConsumer(**brokers.options, isolation_level=COMMITTED_ONLY, **options)


def to_record(record: ConsumerRecord) -> IncomingRecord:
    """What a client has read."""
    return IncomingRecord(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


def read_records(batch: Any, content: memoryview) -> Iterator["FetchedRecord"]:
    """The records in the bytes of a batch; in a name, what is not UTF-8 is escaped.

    Args:
        batch: the same batch, as aiokafka has parsed its beginning.

    Raises:
        ValueError: the bytes are no records.
    """
    records: bytes | memoryview = content[BATCH_BYTES:]
    if batch.compression_type:
        records = DECOMPRESS[batch.compression_type](bytes(records))
    reader = ByteReader(records)
    *_, count = BATCH_COVERED.unpack_from(content, BATCH_BEGIN.size)
    for _ in range(count):
        reader.number()  # the length of the record
        reader.number()  # its attributes, of which none are defined
        timestamp = batch.first_timestamp + reader.number()
        yield FetchedRecord(
            offset=batch.base_offset + reader.number(),
            timestamp=batch.max_timestamp if batch.timestamp_type else timestamp,
            timestamp_type=batch.timestamp_type,
            key=reader.nullable(),
            value=reader.nullable(),
            headers=[
                (reader.content().decode(errors="backslashreplace"), reader.nullable())
                for _ in range(reader.number())
            ],
        )


class FetchedRecord(NamedTuple):
    """A record with the attributes of aiokafka's own."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    checksum: None = None


class FetchedBatch:
    """A batch of aiokafka, which can be read also if the name of a header is not UTF-8."""

    def __init__(self, batch: Any, content: memoryview) -> None:
        self._batch = batch
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            return iter([*self._batch])
        except UnicodeDecodeError:
            return read_records(self._batch, self._content)


class FetchedBatches:
    """The content of a fetch, with what aiokafka's fetcher asks of its `MemoryRecords`."""

    def __init__(self, content: bytes) -> None:
        self._rest = memoryview(content)
        self._batches = MemoryRecords(content)

    def has_next(self) -> bool:
        return bool(self._batches.has_next())

    def size_in_bytes(self) -> int:
        return int(self._batches.size_in_bytes())

    def next_batch(self) -> FetchedBatch:
        batch = self._batches.next_batch()
        length = LENGTH_BEGINS + BATCH_BEGIN.unpack_from(self._rest)[1]
        content, self._rest = self._rest[:length], self._rest[length:]
        return FetchedBatch(batch, content)


fetcher.MemoryRecords = FetchedBatches
