"""The inbox of a consumer: the one place where a message that was delivered before is recognised.

The table `consumed_versions` holds how far each consumer came in each stream. A version is written
in the transaction of its message's effects, so each message is applied once, however often it is
delivered. With it goes the id of its event: another event under the same version is no repeat, but
the sign of an event store that was restored to an older moment, or of a writer that is none.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self, TypeAlias
from uuid import UUID

from shared.inbox import parked
from shared.messaging.messages import Message, StreamKey
from shared.messaging.records import IncomingRecord
from shared.runtime.postgres import Connection

TOPIC_UNKNOWN = ""
"""Of a version that a release wrote which did not know topics yet."""

READ_VERSIONS = """
    SELECT topic, stream_id, version,
           CASE WHEN event_version = version THEN event_id END AS event_id
    FROM consumed_versions
    WHERE consumer = $1 AND stream_id = ANY($2)
"""

# Only over the version that was read: any other means that another process consumes this stream.
WRITE_VERSIONS = """
    WITH noted AS (
        SELECT * FROM unnest($2::uuid[], $3::integer[], $4::integer[], $5::uuid[], $6::text[])
            AS noted (stream_id, version_before, version, event_id, topic)
    ), added AS (
        INSERT INTO consumed_versions
            (consumer, stream_id, topic, version, event_version, event_id)
        SELECT $1, stream_id, topic, version, version, event_id FROM noted WHERE version_before = 0
        ON CONFLICT DO NOTHING
        RETURNING stream_id
    ), moved AS (
        UPDATE consumed_versions AS known
        SET topic = noted.topic,
            version = noted.version, event_version = noted.version, event_id = noted.event_id
        FROM noted
        WHERE known.consumer = $1 AND known.stream_id = ANY($2) -- by the index in every plan
          AND known.stream_id = noted.stream_id AND known.topic IN (noted.topic, '')
          AND known.version = noted.version_before
        RETURNING known.stream_id
    )
    SELECT (SELECT count(*) FROM added) + (SELECT count(*) FROM moved)
"""


class ConsumedElsewhere(Exception):
    """Another process of the same consumer consumed the same stream meanwhile."""


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
class OtherHistory:
    """Another event was consumed before under the same version: park the stream.

    What follows can be of the other history as well, so nothing of it is applied.
    """

    version: int
    event_id: UUID
    consumed_id: UUID | None

    @property
    def reason(self) -> str:
        """Why the stream is parked, and the repair."""
        return (
            f"other history: version {self.version} is event {self.event_id}, but"
            f" {self.consumed_id} was consumed before: discard it if another program wrote it; if"
            " an event store was restored to an older moment, restore all databases to one moment,"
            " then run `make republish`"
        )


@dataclass(frozen=True, slots=True)
class Next:
    """The message is the next one of its stream: apply it, then `mark_consumed`."""


Verdict: TypeAlias = Repeated | Waiting | Gap | OtherHistory | Next


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """The idempotent consumer: which messages of one transaction are new, and which came before.

    Open it first in the transaction, ask for the `verdict` on each message in the order of
    delivery, and `write_versions` last.
    """

    connection: Connection
    consumer: str
    versions_before: dict[StreamKey, Consumed]
    """The last consumed version of each stream as it was read; a stream without one is absent."""
    versions: dict[StreamKey, Consumed] = field(default_factory=dict)
    """Those that this transaction adds."""
    waiting: set[StreamKey] = field(default_factory=set)
    """The streams that are parked."""

    @classmethod
    async def open(cls, connection: Connection, consumer: str, messages: Iterable[Message]) -> Self:
        """For a worker: no stream of these messages is redriven before the transaction ends."""
        streams = {message.stream for message in messages}
        # First the parked streams: a redrive that holds one is waited for, and writes versions.
        waiting = await parked.hold_shared(connection, consumer, streams)
        before = await read_versions(connection, consumer, streams)
        return cls(
            connection=connection, consumer=consumer, versions_before=before, waiting=waiting
        )

    @classmethod
    async def open_parked(cls, connection: Connection, consumer: str, stream: StreamKey) -> Self:
        """For a redrive: no worker touches the parked stream before the transaction ends.

        Its messages are what is redriven, so no verdict is `Waiting`.

        Raises:
            NotParked: the stream is not parked.
        """
        await parked.hold(connection, consumer, stream)
        before = await read_versions(connection, consumer, [stream])
        return cls(connection=connection, consumer=consumer, versions_before=before)

    def verdict(self, message: Message) -> Verdict:
        """What is to be done with the next message in the order of delivery."""
        stream, previous = message.stream, message.previous_version
        last = self.versions.get(stream, self.versions_before.get(stream, NOTHING))
        consumed = last.version
        if message.stream_version == consumed and last.event_id not in (None, message.event_id):
            return OtherHistory(consumed, message.event_id, last.event_id)
        if message.stream_version <= consumed:
            return Repeated()
        if stream in self.waiting:
            return Waiting()
        if previous is not None and previous > consumed:
            return Gap(previous)
        return Next()

    def mark_consumed(self, message: Message) -> None:
        """The message was applied, or is passed over: `write_versions` will write its version."""
        self.versions[message.stream] = Consumed(message.stream_version, message.event_id)

    async def park(self, record: IncomingRecord, message: Message, reason: str) -> None:
        """Let the stream wait from this message on."""
        await parked.park(self.connection, self.consumer, record, message, reason)
        self.waiting.add(message.stream)

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
            [stream.stream_id for stream in streams],
            [self.versions_before.get(stream, NOTHING).version for stream in streams],
            [self.versions[stream].version for stream in streams],
            [self.versions[stream].event_id for stream in streams],
            [stream.topic for stream in streams],
        )
        if written < len(streams):
            raise ConsumedElsewhere(f"{len(streams) - written} of {len(streams)} streams")


async def read_versions(
    connection: Connection, consumer: str, streams: Iterable[StreamKey]
) -> dict[StreamKey, Consumed]:
    """The last consumed version of each of these streams that has one."""
    wanted = set(streams)
    rows = await connection.fetch(READ_VERSIONS, consumer, [each.stream_id for each in wanted])
    found = {
        StreamKey(row["topic"], row["stream_id"]): Consumed(row["version"], row["event_id"])
        for row in rows
    }
    for stream in wanted - found.keys():
        if last := found.get(StreamKey(TOPIC_UNKNOWN, stream.stream_id)):
            found[stream] = last
    return found
