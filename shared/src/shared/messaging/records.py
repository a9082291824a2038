"""A record as read from Kafka, and the message in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from shared.messaging import messages
from shared.messaging.bounds import VERSION_FORM, VERSION_MAX
from shared.messaging.messages import Message, ReadHeader
from shared.runtime import telemetry

ID_CHARACTERS = 36
SHOWN_CHARACTERS_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingRecord:
    """A record as read from Kafka."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[ReadHeader]


class Malformed(Exception):
    """The record is not a message of this system: the text is the reason."""


def parse_message(record: IncomingRecord) -> Message:
    """The message in a record.

    Raises:
        Malformed: a header is missing or malformed, or there is no key or value.
    """
    if record.key is None or record.value is None:
        raise Malformed("no key" if record.key is None else "no value")
    headers = Headers(record)
    try:
        message = Message(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=record.key.decode(),
            event_id=to_id(headers[messages.ID]),
            type=headers[messages.TYPE],
            schema_version=to_version(headers[messages.SCHEMA_VERSION]),
            stream_id=to_id(headers[messages.STREAM_ID]),
            stream_version=to_version(headers[messages.STREAM_VERSION]),
            previous_version=previous_version(headers.find(messages.PREVIOUS_VERSION)),
            correlation_id=to_id(headers[messages.CORRELATION_ID]),
            time=datetime.fromisoformat(headers[messages.TIME]),
            traceparent=headers.find(telemetry.TRACEPARENT, errors="replace"),
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


class Headers:
    """The headers of a record that a message needs; others are not looked at, here or in the job.

    Of two with one name the first counts, as it does for Spark.
    """

    def __init__(self, record: IncomingRecord) -> None:
        self._values = dict(reversed(record.headers))

    def find(self, name: str, errors: str = "strict") -> str | None:
        """None without that header, or its value. Raises ValueError: it is not UTF-8."""
        value = self._values.get(name)
        return None if value is None else value.decode(errors=errors)

    def __getitem__(self, name: str) -> str:
        """Raises KeyError, ValueError."""
        text = self.find(name)
        if text is None:
            raise KeyError(name)
        return text


def previous_version(header: str | None) -> int | None:
    """None when the record has no such header. Raises ValueError."""
    return None if header is None else to_version(header)


def to_version(header: str) -> int:
    """Digits alone: `int` takes more, which Spark reads in another way. Raises ValueError."""
    if not re.fullmatch(VERSION_FORM, header):
        raise ValueError(f"invalid literal for a version: {header[:SHOWN_CHARACTERS_MAX]!r}")
    return int(header)


def to_id(header: str) -> UUID:
    """As it is written here: UUID takes braces and prefixes, too. Raises ValueError."""
    if len(header) != ID_CHARACTERS:
        raise ValueError("badly formed id")
    return UUID(header)
