"""The inbox of a consumer: the one place where a message that was delivered before is recognised.

The table `consumed_versions` holds how far each consumer came in each stream. A version is written
in the transaction of its message's effects, so each message is applied once, however often it is
delivered. With it goes the id of its event: another event under the same version is no repeat, but
the sign of an event store that was restored to an older moment, or of two streams with one id.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self, TypeAlias
from uuid import UUID

from shared.inbox import parked
from shared.messaging.messages import Message
from shared.messaging.records import IncomingRecord
from shared.runtime.postgres import Connection

READ_VERSIONS = """
    SELECT stream_id, version, CASE WHEN event_version = version THEN event_id END AS event_id
    FROM consumed_versions
    WHERE consumer = $1 AND stream_id = ANY($2)
"""

# Only over the version that was read: any other means that another process consumes this stream.
WRITE_VERSIONS = """
    WITH noted AS (
        SELECT * FROM unnest($2::uuid[], $3::integer[], $4::integer[], $5::uuid[])
            AS noted (stream_id, version_before, version, event_id)
    ), added AS (
        INSERT INTO consumed_versions (consumer, stream_id, version, event_version, event_id)
        SELECT $1, stream_id, version, version, event_id FROM noted WHERE version_before = 0
        ON CONFLICT DO NOTHING
        RETURNING stream_id
    ), moved AS (
        UPDATE consumed_versions AS known
        SET version = noted.version, event_version = noted.version, event_id = noted.event_id
        FROM noted
        WHERE known.consumer = $1 AND known.stream_id = ANY($2) -- by the index in every plan
          AND known.stream_id = noted.stream_id
          AND known.version = noted.version_before
        RETURNING known.stream_id
    )
    SELECT (SELECT count(*) FROM added) + (SELECT count(*) FROM moved)
"""


class ConsumedElsewhere(Exception):
    """Another process of the same consumer consumed the same stream meanwhile."""


class OtherHistory(Exception):
    """Another event was consumed before under the same version: the text names the repair."""

    def __init__(self, message: Message, consumed: "Consumed") -> None:
        super().__init__(
            f"version {message.stream_version} of stream {message.stream_id} is event"
            f" {message.event_id}, but {consumed.event_id} was consumed before: two streams have"
            " this id, or its event store was restored to an older moment; restore all databases to"
            " one moment, then run `make republish`"
        )


@dataclass(frozen=True, slots=True)
class Consumed:
    """The last consumed message of a stream; version 0 when there is none."""

    version: int
    event_id: UUID | None
    """None when a release wrote the version that did not know the id yet."""


NOTHING = Consumed(0, None)


@dataclass(frozen=True, slots=True)
class Repeated:
    """The message was consumed before: drop it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Its stream is parked: the message waits there for a redrive."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Version `missing` of its stream, which came before, was not consumed: park the stream."""

    missing: int

    @property
    def reason(self) -> str:
        """Why the stream is parked."""
        return f"gap: version {self.missing} is missing"


@dataclass(frozen=True, slots=True)
class Next:
    """The message is the next one of its stream: apply it, then `mark_consumed`."""


Verdict: TypeAlias = Repeated | Waiting | Gap | Next


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """The idempotent consumer: which messages of one transaction are new, and which came before.

    Open it first in the transaction, ask for the `verdict` on each message in the order of
    delivery, and `write_versions` last.
    """

    connection: Connection
    consumer: str
    versions_before: dict[UUID, Consumed]
    """The last consumed version of each stream as it was read; a stream without one is absent."""
    versions: dict[UUID, Consumed] = field(default_factory=dict)
    """Those that this transaction adds."""
    waiting: set[UUID] = field(default_factory=set)
    """The streams that are parked."""

    @classmethod
    async def open(cls, connection: Connection, consumer: str, messages: Iterable[Message]) -> Self:
        """For a worker: no stream of these messages is redriven before the transaction ends."""
        stream_ids = {message.stream_id for message in messages}
        # First the parked streams: a redrive that holds one is waited for, and writes versions.
        waiting = await parked.hold_shared(connection, consumer, stream_ids)
        before = await read_versions(connection, consumer, stream_ids)
        return cls(
            connection=connection, consumer=consumer, versions_before=before, waiting=waiting
        )

    @classmethod
    async def open_parked(cls, connection: Connection, consumer: str, stream_id: UUID) -> Self:
        """For a redrive: no worker touches the parked stream before the transaction ends.

        Its messages are what is redriven, so no verdict is `Waiting`.

        Raises:
            NotParked: the stream is not parked.
        """
        await parked.hold(connection, consumer, stream_id)
        before = await read_versions(connection, consumer, [stream_id])
        return cls(connection=connection, consumer=consumer, versions_before=before)

    def verdict(self, message: Message) -> Verdict:
        """What is to be done with the next message in the order of delivery.

        Raises:
            OtherHistory: it is another event than the one that was consumed under its version.
        """
        stream_id, previous = message.stream_id, message.previous_version
        last = self.versions.get(stream_id, self.versions_before.get(stream_id, NOTHING))
        consumed = last.version
        if message.stream_version == consumed and last.event_id not in (None, message.event_id):
            raise OtherHistory(message, last)
        if message.stream_version <= consumed:
            return Repeated()
        if stream_id in self.waiting:
            return Waiting()
        if previous is not None and previous > consumed:
            return Gap(previous)
        return Next()

    def mark_consumed(self, message: Message) -> None:
        """The message was applied, or is passed over: `write_versions` will write its version."""
        self.versions[message.stream_id] = Consumed(message.stream_version, message.event_id)

    async def park(self, record: IncomingRecord, message: Message, reason: str) -> None:
        """Let the stream wait from this message on."""
        await parked.park(self.connection, self.consumer, record, message, reason)
        self.waiting.add(message.stream_id)

    async def add_waiting(self, record: IncomingRecord, message: Message) -> None:
        """Store one more message of a stream that waits."""
        await parked.add_message(self.connection, self.consumer, record, message)

    async def write_versions(self) -> None:
        """Write what was marked as consumed, in the transaction of its effects.

        Raises:
            ConsumedElsewhere: a version is not what it was when it was read.
        """
        if not self.versions:
            return
        streams = sorted(self.versions)
        written = await self.connection.fetchval(
            WRITE_VERSIONS,
            self.consumer,
            streams,
            [self.versions_before.get(stream_id, NOTHING).version for stream_id in streams],
            [self.versions[stream_id].version for stream_id in streams],
            [self.versions[stream_id].event_id for stream_id in streams],
        )
        if written < len(streams):
            raise ConsumedElsewhere(f"{len(streams) - written} of {len(streams)} streams")


async def read_versions(
    connection: Connection, consumer: str, stream_ids: Iterable[UUID]
) -> dict[UUID, Consumed]:
    """The last consumed version of each of these streams that has one."""
    rows = await connection.fetch(READ_VERSIONS, consumer, list(stream_ids))
    return {row["stream_id"]: Consumed(row["version"], row["event_id"]) for row in rows}
