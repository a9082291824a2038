"""A record as read from Kafka, and the message in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from shared.messaging import messages
from shared.messaging.messages import Message
from shared.runtime import telemetry

VERSION_MAX = 2**31 - 1
"""PostgreSQL's largest integer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingRecord:
    """A record as read from Kafka."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


class Malformed(Exception):
    """The record is not a message of this system: the text is the reason."""


def parse_message(record: IncomingRecord) -> Message:
    """The message in a record.

    Raises:
        Malformed: a header is missing or malformed, or there is no key or value.
    """
    if record.key is None or record.value is None:
        raise Malformed("no key" if record.key is None else "no value")
    if any(value is None for _, value in record.headers):
        raise Malformed("a header without a value")
    try:
        headers = {name: value.decode() for name, value in record.headers}
        message = Message(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=record.key.decode(),
            event_id=UUID(headers[messages.ID]),
            type=headers[messages.TYPE],
            schema_version=int(headers[messages.SCHEMA_VERSION]),
            stream_id=UUID(headers[messages.STREAM_ID]),
            stream_version=int(headers[messages.STREAM_VERSION]),
            previous_version=previous_version(headers.get(messages.PREVIOUS_VERSION)),
            correlation_id=UUID(headers[messages.CORRELATION_ID]),
            time=datetime.fromisoformat(headers[messages.TIME]),
            traceparent=headers.get(telemetry.TRACEPARENT),
            data=record.value,
        )
    except KeyError as error:
        raise Malformed(f"no header {error}") from None
    except ValueError as error:
        raise Malformed(str(error)) from None
    if not 0 <= (message.previous_version or 0) < message.stream_version <= VERSION_MAX:
        raise Malformed(f"version {message.stream_version} after {message.previous_version}")
    if message.time.tzinfo is None:
        raise Malformed(f"{headers[messages.TIME]} has no time zone")
    return message


def previous_version(header: str | None) -> int | None:
    """None when the record has no such header. Raises ValueError."""
    return None if header is None else int(header)
