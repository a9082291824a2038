"""Dead letters: a record untouched, with headers that name its origin and the reason."""

import time

from shared.messaging import wire
from shared.messaging.records import IncomingRecord
from shared.messaging.topics import TOPICS
from shared.messaging.wire import OutgoingRecord

REASON = "dlq_reason"
TOPIC = "dlq_topic"
PARTITION = "dlq_partition"
OFFSET = "dlq_offset"


def to_dead_letter(record: IncomingRecord, reader: str, reason: str) -> OutgoingRecord:
    """The record as a dead letter of `reader`, for the same partition of the dead letter topic."""
    headers = [
        *record.headers,
        (REASON, reason.encode(errors="backslashreplace")),
        (TOPIC, record.topic.encode()),
        (PARTITION, str(record.partition).encode()),
        (OFFSET, str(record.offset).encode()),
    ]
    return OutgoingRecord(
        topic=TOPICS[record.topic].dead_letters_of(reader),
        partition=record.partition,
        key=record.key,
        value=record.value,
        headers=wire.pack(headers),
        milliseconds=time.time_ns() // 1_000_000,
    )
