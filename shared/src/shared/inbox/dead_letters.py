"""Dead letters: a record untouched, with headers that name its origin and the reason.

The names of its headers are as they were read, so a name that is not UTF-8 is escaped.
"""

import time

from shared.messaging import wire
from shared.messaging.messages import ReadHeader
from shared.messaging.records import IncomingRecord
from shared.messaging.topics import TOPICS
from shared.messaging.wire import OutgoingRecord

REASON = "dlq_reason"
TOPIC = "dlq_topic"
PARTITION = "dlq_partition"
OFFSET = "dlq_offset"
BYTES = "dlq_bytes"
"""The size of a record that is too large for its letter, which has nothing of it."""

RECORD_BYTES_MAX = 1024 * 1024
"""Kafka's default for a batch: what is larger came compressed, and would not fit into the topic of
dead letters. It stays where it is."""


def to_dead_letter(record: IncomingRecord, reader: str, reason: str) -> OutgoingRecord:
    """The record as a dead letter of `reader`, for the same partition of the dead letter topic."""
    origin: list[ReadHeader] = [
        (REASON, reason.encode(errors="backslashreplace")),
        (TOPIC, record.topic.encode()),
        (PARTITION, str(record.partition).encode()),
        (OFFSET, str(record.offset).encode()),
    ]
    size = len(record.key or b"") + len(record.value or b"") + len(wire.pack(record.headers))
    if size > RECORD_BYTES_MAX:
        key, value, headers = None, None, [*origin, (BYTES, str(size).encode())]
    else:
        key, value, headers = record.key, record.value, [*record.headers, *origin]
    return OutgoingRecord(
        topic=TOPICS[record.topic].dead_letters_of(reader),
        partition=record.partition,
        key=key,
        value=value,
        headers=wire.pack(headers),
        milliseconds=time.time_ns() // 1_000_000,
    )
