"""Records as any program may write them: headers whose names are bytes, batches of one record."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from shared.messaging import kafka, wire
from shared.messaging.records import IncomingRecord
from shared.messaging.wire import OutgoingRecord, prefixed, varint
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id

NOT_UTF_8 = b"\xff\xfe"
NOON_MILLISECONDS = 1_767_268_800_000
"""Noon on 2026-01-01."""

RawHeader = tuple[bytes, bytes | None]


def pack(*headers: RawHeader) -> bytes:
    """As `wire.pack`, with names that are bytes."""
    pieces = [varint(len(headers))]
    for name, value in headers:
        pieces += [*prefixed(name), *prefixed(value)]
    return b"".join(pieces)


def raw(
    topic: str,
    partition: int,
    *headers: RawHeader,
    key: bytes | None = b"k",
    value: bytes | None = b"{}",
    milliseconds: int = NOON_MILLISECONDS,
) -> OutgoingRecord:
    return OutgoingRecord(topic, partition, key, value, pack(*headers), milliseconds)


def event_headers(type_: str, stream_id: UUID | str, version: int = 1) -> dict[str, str]:
    """Make the headers of an event; the one before it in its stream is on the topic, too."""
    return {
        "ce_id": str(new_id()),
        "ce_type": type_,
        "ce_schemaversion": "1",
        "ce_streamid": str(stream_id),
        "ce_streamversion": str(version),
        "ce_previousversion": str(version - 1),
        "ce_correlationid": str(new_id()),
        "ce_time": "2016-11-11T00:00:00Z",
    }


def event_record(
    topic: str, type_: str, stream_id: UUID, value: str, version: int = 1
) -> IncomingRecord:
    """Make the record of an event, as a consumer reads it."""
    return IncomingRecord(
        topic=topic,
        partition=0,
        offset=0,
        key=str(stream_id).encode(),
        value=value.encode(),
        headers=wire.to_headers(event_headers(type_, stream_id, version)),
    )


async def ignore_letters(letters: Sequence[OutgoingRecord]) -> None:
    """Take dead letters that no test reads."""


def encode(headers: Mapping[str, str]) -> Sequence[tuple[bytes, bytes]]:
    return [(name.encode(), text.encode()) for name, text in headers.items()]


def many_headers(count: int) -> Sequence[RawHeader]:
    """Headers that no reader knows, with values that are no text."""
    return [(b"h%d" % number, NOT_UTF_8) for number in range(count)]


async def write_each(servers: str, records: Sequence[OutgoingRecord]) -> list[int]:
    """Write records, each in a batch of its own; their offsets."""
    producer = kafka.create_producer(Brokers(servers), "test")
    await producer.start()
    try:
        sent = [await kafka.publish(producer, [each]) for each in records]
    finally:
        await kafka.close(producer)
    return [batch.base_offset for batches in sent for batch in batches]
