"""What happens to a record that a worker reads: it takes effect, is skipped, or is set aside.

No exception leaves `take` while the process works: Faust acknowledges a record whose handler
raised.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
from aiokafka.errors import KafkaError
from opentelemetry.trace import SpanKind

from shared import messages, postgres, telemetry
from shared.errors import VersionConflict
from shared.event_store import AlreadyConsumed
from shared.kafka import OutgoingRecord
from shared.messages import Message
from shared.topics import TOPICS

log = logging.getLogger(__name__)

BACKOFF_SECONDS_FIRST = 0.05
BACKOFF_SECONDS_MAX = 5.0

TRANSIENT = (
    *postgres.AWAY,
    KafkaError,
    VersionConflict,
    asyncpg.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
)
"""Errors that another attempt may not meet. All others are the record's own fault, or a bug's."""

Reaction = Callable[[Message], Awaitable[None]]
"""Makes a message take effect. Raises AlreadyConsumed when it did before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingRecord:
    """A record as Kafka gave it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


class Malformed(Exception):
    """The record is no message of ours: the text says why."""


class Consumer:
    """One reader of topics. `reactions` are the message types it cares about, by topic and type.

    `set_aside` puts a record into its dead letter topic and returns when that is acknowledged.
    """

    def __init__(
        self,
        name: str,
        reactions: Mapping[str, Mapping[str, Sequence[Reaction]]],
        set_aside: Callable[[OutgoingRecord], Awaitable[None]],
    ) -> None:
        self.name = name
        self._reactions = reactions
        self._set_aside = set_aside

    @property
    def topics(self) -> list[str]:
        return list(self._reactions)

    async def take(self, record: IncomingRecord) -> None:
        """Let a record take effect, however often that has to be tried."""
        try:
            message = message_of(record)
        except Malformed as error:
            await self._dead_letter(record, f"malformed: {error}")
            return
        for reaction in self._reactions[record.topic].get(message.type, ()):
            await self._react(reaction, record, message)

    async def _react(self, reaction: Reaction, record: IncomingRecord, message: Message) -> None:
        headers = {telemetry.TRACEPARENT: message.traceparent} if message.traceparent else {}
        with telemetry.tracer.start_as_current_span(
            f"process {message.topic}",
            context=telemetry.extract(headers),
            kind=SpanKind.CONSUMER,
            attributes=self._attributes(message),
        ) as span:
            try:
                await with_retries(lambda: reaction(message), f"{message.type} {message.event_id}")
            except AlreadyConsumed:
                span.set_attribute("app.duplicate", True)
            except Exception as error:
                span.record_exception(error)
                log.exception("%s cannot take %s %s", self.name, message.type, message.event_id)
                await self._dead_letter(record, f"{type(error).__name__}: {error}")

    def _attributes(self, message: Message) -> dict[str, str | int]:
        return {
            telemetry.MESSAGING_SYSTEM: "kafka",
            telemetry.MESSAGING_OPERATION_NAME: "process",
            telemetry.MESSAGING_OPERATION_TYPE: "process",
            telemetry.MESSAGING_DESTINATION: message.topic,
            telemetry.MESSAGING_PARTITION: str(message.partition),
            telemetry.MESSAGING_OFFSET: message.offset,
            telemetry.MESSAGING_KEY: message.key,
            telemetry.MESSAGING_MESSAGE_ID: str(message.event_id),
            telemetry.MESSAGING_CONSUMER_GROUP: self.name,
            telemetry.EVENT_TYPE: message.type,
            telemetry.STREAM_ID: str(message.stream_id),
            telemetry.STREAM_VERSION: message.stream_version,
        }

    async def _dead_letter(self, record: IncomingRecord, reason: str) -> None:
        """The record untouched, with headers that say where it was and why it is here."""
        headers = [
            *record.headers,
            ("dlq_reason", reason.encode()),
            ("dlq_topic", record.topic.encode()),
            ("dlq_partition", str(record.partition).encode()),
            ("dlq_offset", str(record.offset).encode()),
        ]
        letter = OutgoingRecord(
            topic=TOPICS[record.topic].dead_letters_of(self.name),
            partition=record.partition,
            key=record.key,
            value=record.value,
            headers=headers,
            timestamp=datetime.now(UTC),
        )
        log.error("%s/%d/%d set aside: %s", record.topic, record.partition, record.offset, reason)
        await with_retries(lambda: self._set_aside(letter), "dead letter")


async def with_retries(attempt: Callable[[], Awaitable[None]], what: str) -> None:
    """Try until it works or fails for good; the pause doubles up to BACKOFF_SECONDS_MAX.

    There is no last attempt: going on without would lose the record or break its order.
    """
    pause = BACKOFF_SECONDS_FIRST
    while True:
        try:
            return await attempt()
        except TRANSIENT as error:
            log.warning("%s again in %.2f s: %r", what, pause, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, BACKOFF_SECONDS_MAX)


def message_of(record: IncomingRecord) -> Message:
    """The message in a record.

    Raises:
        Malformed: a header is missing or has not its form, or there is no key or value.
    """
    if record.key is None or record.value is None:
        raise Malformed("no key" if record.key is None else "no value")
    if any(value is None for _, value in record.headers):
        raise Malformed("a header without a value")
    try:
        headers = {name: value.decode() for name, value in record.headers}
        return Message(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=record.key.decode(),
            event_id=UUID(headers[messages.ID]),
            type=headers[messages.TYPE],
            schema_version=int(headers[messages.SCHEMA_VERSION]),
            stream_id=UUID(headers[messages.STREAM_ID]),
            stream_version=int(headers[messages.STREAM_VERSION]),
            correlation_id=UUID(headers[messages.CORRELATION_ID]),
            time=datetime.fromisoformat(headers[messages.TIME]),
            traceparent=headers.get(telemetry.TRACEPARENT),
            data=record.value,
        )
    except KeyError as error:
        raise Malformed(f"no header {error}") from None
    except ValueError as error:
        raise Malformed(str(error)) from None
