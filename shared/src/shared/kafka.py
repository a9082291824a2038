"""The producer that loses and reorders nothing, and records as they go over the wire."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import RecordMetadata

BATCH_BYTES_MAX = 512 * 1024
"""Below the broker's default message.max.bytes of 1 MB: too large a batch is never acknowledged."""
REQUEST_TIMEOUT_MILLISECONDS = 5_000
RETRY_BACKOFF_MILLISECONDS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRecord:
    """A record with its partition chosen, so that no key is hashed here."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    timestamp: datetime


def producer(bootstrap_servers: str, client_id: str) -> AIOKafkaProducer:
    """A producer whose acknowledgement means "in all in-sync replicas, once, in order"."""
    return AIOKafkaProducer(
        bootstrap_servers=bootstrap_servers,
        client_id=client_id,
        acks="all",
        enable_idempotence=True,
        max_batch_size=BATCH_BYTES_MAX,
        linger_ms=0,
        request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS,
        retry_backoff_ms=RETRY_BACKOFF_MILLISECONDS,
        compression_type=None,  # zstd for a real network; lz4 is slow in aiokafka
    )


async def publish(client: AIOKafkaProducer, records: Iterable[OutgoingRecord]) -> list[int]:
    """Send records, in order within each partition; wait for all, and give their offsets.

    Batches are built here and sent whole, which is several times quicker than `send` with its
    future for every record.

    Raises:
        KafkaError: a batch was refused for good. The producer has a hole in its sequence then:
            close it, make another, and publish again from the last checkpoint.
    """
    batches: list[Batch] = []
    latest: dict[tuple[str, int], Batch] = {}
    slots: list[tuple[Batch, int]] = []
    for record in records:
        target = (record.topic, record.partition)
        batch = latest.get(target)
        if batch is None or not batch.append(record):
            batch = latest[target] = Batch(client.create_batch(), *target)
            batches.append(batch)
            batch.append(record)
        slots.append((batch, batch.count - 1))
    acknowledged = [await batch.send(client) for batch in batches]
    for batch, place in zip(batches, await asyncio.gather(*acknowledged), strict=True):
        batch.base_offset = place.offset
    return [batch.base_offset + index for batch, index in slots]


@dataclass(slots=True)
class Batch:
    """Records of one partition that travel and are acknowledged together."""

    builder: BatchBuilder
    topic: str
    partition: int
    count: int = 0
    base_offset: int = -1
    """Of its first record, once it is acknowledged."""

    def append(self, record: OutgoingRecord) -> bool:
        """False when the batch is full; one record fits always, however large it is."""
        appended = self.builder.append(
            timestamp=int(record.timestamp.timestamp() * 1000),
            key=record.key,
            value=record.value,
            headers=record.headers,
        )
        self.count += appended is not None
        return appended is not None

    async def send(self, client: AIOKafkaProducer) -> asyncio.Future[RecordMetadata]:
        """Hand over to the sender. A closed builder does not linger."""
        self.builder.close()
        future: asyncio.Future[RecordMetadata] = await client.send_batch(
            self.builder, self.topic, partition=self.partition
        )
        return future


def single_writer(
    bootstrap_servers: str, client_id: str
) -> Callable[[OutgoingRecord], Awaitable[None]]:
    """A function that writes one record and waits for its acknowledgement.

    For the rare record, such as a dead letter: each call has a producer of its own, so that a
    refused record leaves nothing behind. Raises KafkaError.
    """

    async def write(record: OutgoingRecord) -> None:
        client = producer(bootstrap_servers, client_id)
        try:
            await client.start()
            await publish(client, [record])
        finally:
            await close(client)

    return write


async def close(client: AIOKafkaProducer) -> None:
    """Close a producer and drop what it still holds.

    Its own `stop` would flush: nothing of ours is unacknowledged at a good end, and after a failure
    a flush would put old records between those that are sent again.
    """
    client._closed = True
    await client._sender.close()
    await client.client.close()
