"""The inbox of a consumer: the one place where a message that was delivered before is recognised.

The table `consumed_versions` holds how far each consumer came in each stream. A version is written
in the transaction of its message's effects, so each message is applied once, however often it is
delivered.
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
    SELECT stream_id, version
    FROM consumed_versions
    WHERE consumer = $1 AND stream_id = ANY($2)
"""

# Only over the version that was read: any other means that another process consumes this stream.
WRITE_VERSIONS = """
    WITH noted AS (
        SELECT * FROM unnest($2::uuid[], $3::integer[], $4::integer[])
            AS noted (stream_id, version_before, version)
    ), added AS (
        INSERT INTO consumed_versions (consumer, stream_id, version)
        SELECT $1, stream_id, version FROM noted WHERE version_before = 0
        ON CONFLICT DO NOTHING
        RETURNING stream_id
    ), moved AS (
        UPDATE consumed_versions AS known
        SET version = noted.version
        FROM noted
        WHERE known.consumer = $1 AND known.stream_id = noted.stream_id
          AND known.version = noted.version_before
        RETURNING known.stream_id
    )
    SELECT (SELECT count(*) FROM added) + (SELECT count(*) FROM moved)
"""


class ConsumedElsewhere(Exception):
    """Another process of the same consumer consumed the same stream meanwhile."""


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
    versions_before: dict[UUID, int]
    """The last consumed version of each stream as it was read; a stream without one is absent."""
    versions: dict[UUID, int] = field(default_factory=dict)
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
        """What is to be done with the next message in the order of delivery."""
        stream_id, previous = message.stream_id, message.previous_version
        consumed = self.versions.get(stream_id, self.versions_before.get(stream_id, 0))
        if message.stream_version <= consumed:
            return Repeated()
        if stream_id in self.waiting:
            return Waiting()
        if previous is not None and previous > consumed:
            return Gap(previous)
        return Next()

    def mark_consumed(self, message: Message) -> None:
        """The message was applied, or is passed over: `write_versions` will write its version."""
        self.versions[message.stream_id] = message.stream_version

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
            [self.versions_before.get(stream_id, 0) for stream_id in streams],
            [self.versions[stream_id] for stream_id in streams],
        )
        if written < len(streams):
            raise ConsumedElsewhere(f"{len(streams) - written} of {len(streams)} streams")


async def read_versions(
    connection: Connection, consumer: str, stream_ids: Iterable[UUID]
) -> dict[UUID, int]:
    """The last consumed version of each of these streams that has one."""
    rows = await connection.fetch(READ_VERSIONS, consumer, list(stream_ids))
    return {row["stream_id"]: row["version"] for row in rows}
