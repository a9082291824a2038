"""Parked streams: one message could not be applied, and those after it wait in their order.

The tables `parked_streams`, `parked_messages` and `parked_audit`. A worker holds the row of a
stream shared while it consumes messages, a redrive holds it exclusively: the two never interleave.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from shared.messaging.messages import Message, ReadHeader, StreamKey
from shared.messaging.records import IncomingRecord
from shared.runtime.postgres import Connection

STREAMS_MAX = 1000
"""Streams in one listing."""

HOLD_SHARED = """
    SELECT topic, stream_id
    FROM parked_streams
    WHERE consumer = $1 AND stream_id = ANY($2)
    ORDER BY stream_id, topic
    FOR SHARE
"""

HOLD = """
    SELECT FROM parked_streams WHERE consumer = $1 AND topic = $2 AND stream_id = $3 FOR UPDATE
"""

# A stream that is parked already keeps its reason; the update only holds the row.
PARK = """
    INSERT INTO parked_streams AS known (consumer, stream_id, topic, reason, parked_at)
    VALUES ($1, $2, $3, $4, now())
    ON CONFLICT (consumer, stream_id, topic) DO UPDATE SET reason = known.reason
"""

# What waits already may have been edited or discarded: the record that comes again changes nothing.
ADD_MESSAGE = """
    INSERT INTO parked_messages (consumer, stream_id, version, event_id, topic, partition,
                                 record_offset, key, value, headers, parked_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now())
    ON CONFLICT DO NOTHING
"""

STREAMS = """
    SELECT stream_id, topic, reason, parked_at,
           (SELECT count(*) FROM parked_messages
            WHERE consumer = parked_streams.consumer
              AND topic = parked_streams.topic
              AND stream_id = parked_streams.stream_id) AS waiting
    FROM parked_streams
    WHERE consumer = $1 AND ($2::uuid IS NULL OR stream_id = $2)
    ORDER BY parked_at, stream_id
    LIMIT $3
"""

COUNT = """
    SELECT consumer, count(*) AS streams,
           extract(epoch FROM clock_timestamp() - min(parked_at))::float8 AS seconds
    FROM parked_streams
    GROUP BY consumer
"""

MESSAGES = """
    SELECT version, event_id, topic, partition, record_offset, key, value, headers, discarded
    FROM parked_messages
    WHERE consumer = $1 AND topic = $2 AND stream_id = $3
    ORDER BY version
    LIMIT $4
"""

VALUE = """
    SELECT value
    FROM parked_messages
    WHERE consumer = $1 AND topic = $2 AND stream_id = $3 AND version = $4
"""

EDIT = """
    UPDATE parked_messages SET value = $5
    WHERE consumer = $1 AND topic = $2 AND stream_id = $3 AND version = $4
"""

DISCARD = """
    UPDATE parked_messages SET discarded = true
    WHERE consumer = $1 AND topic = $2 AND stream_id = $3 AND version = $4
"""

RELEASE_MESSAGES = """
    DELETE FROM parked_messages
    WHERE consumer = $1 AND topic = $2 AND stream_id = $3 AND version = ANY($4)
"""

RELEASE_STREAM = """
    DELETE FROM parked_streams WHERE consumer = $1 AND topic = $2 AND stream_id = $3
"""

GIVE_REASON = """
    UPDATE parked_streams SET reason = $4 WHERE consumer = $1 AND topic = $2 AND stream_id = $3
"""

REQUEST_REDRIVE = """
    UPDATE parked_streams SET redrive_at = now()
    WHERE consumer = $1 AND topic = $2 AND stream_id = $3
"""

WRITE_AUDIT = """
    INSERT INTO parked_audit (done_at, done_by, action, consumer, topic, stream_id, version, reason,
                              value_before, value_after)
    VALUES (now(), $1, $2, $3, $4, $5, $6, $7, $8, $9)
"""


ACTIONS = """
    SELECT done_at, done_by AS by, action, topic, stream_id, version, reason, value_before,
           value_after
    FROM parked_audit
    WHERE consumer = $1 AND ($2::uuid IS NULL OR stream_id = $2)
    ORDER BY number DESC
    LIMIT $3
"""


class NotParked(Exception):
    """No such stream or message waits: the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAction:
    """What the audit keeps of an operator's action on a parked stream: by whom, and why."""

    by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAction:
    """An operator's action as the audit has it; values where the action had any."""

    done_at: datetime
    by: str
    action: str
    topic: str | None
    """None in what a release wrote which did not note it."""
    stream_id: UUID
    version: int | None
    reason: str
    value_before: bytes | None
    value_after: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedStream:
    stream_id: UUID
    topic: str
    reason: str
    parked_at: datetime
    waiting: int
    """Messages, also those that are discarded."""

    @property
    def key(self) -> StreamKey:
        return StreamKey(self.topic, self.stream_id)

    @property
    def kind(self) -> str:
        """The reason for callers of an API: without the text of an error, which quotes data."""
        return self.reason.partition(":")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedCount:
    """How many streams of a consumer wait, and the seconds since the first of them was parked."""

    streams: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedMessage:
    version: int
    event_id: UUID
    record: IncomingRecord
    """As it came, or with the value that was edited."""
    discarded: bool


async def hold_shared(
    connection: Connection, consumer: str, streams: Iterable[StreamKey]
) -> set[StreamKey]:
    """Which of these streams wait. None of them is redriven before this transaction ends."""
    ids = list({stream.stream_id for stream in streams})
    rows = await connection.fetch(HOLD_SHARED, consumer, ids)
    return {StreamKey(row["topic"], row["stream_id"]) for row in rows}


async def hold(connection: Connection, consumer: str, stream: StreamKey) -> None:
    """Keep a stream for this transaction alone.

    Raises:
        NotParked: it does not wait.
    """
    if await connection.fetchrow(HOLD, consumer, *stream) is None:
        raise NotParked(f"stream {stream.stream_id} is not parked")


async def park(
    connection: Connection, consumer: str, record: IncomingRecord, message: Message, reason: str
) -> None:
    """Let a stream wait from this message on."""
    await connection.execute(PARK, consumer, message.stream_id, message.topic, reason)
    await add_message(connection, consumer, record, message)


async def add_message(
    connection: Connection, consumer: str, record: IncomingRecord, message: Message
) -> None:
    """Store one more message of a parked stream."""
    await connection.execute(
        ADD_MESSAGE,
        consumer,
        message.stream_id,
        message.stream_version,
        message.event_id,
        record.topic,
        record.partition,
        record.offset,
        record.key,
        record.value,
        to_json(record.headers),
    )


def to_json(headers: Sequence[ReadHeader]) -> str:
    """Those that a message needs are UTF-8; what is not, in others, is escaped or left out."""
    return json.dumps(
        [
            (name, value.decode(errors="backslashreplace"))
            for name, value in headers
            if value is not None
        ]
    )


async def list_streams(
    database: asyncpg.Pool | Connection, consumer: str, stream_id: UUID | None = None
) -> Sequence[ParkedStream]:
    """The parked streams, longest waiting first, at most STREAMS_MAX; or those with one id."""
    rows = await database.fetch(STREAMS, consumer, stream_id, STREAMS_MAX)
    return [ParkedStream(**row) for row in rows]


async def count_streams(connection: Connection) -> Mapping[str, ParkedCount]:
    """The parked streams of each consumer that has any. The role has to read `parked_streams`."""
    return {
        row["consumer"]: ParkedCount(streams=row["streams"], seconds=max(0.0, row["seconds"]))
        for row in await connection.fetch(COUNT)
    }


async def find_stream(
    database: asyncpg.Pool | Connection, consumer: str, stream: StreamKey
) -> ParkedStream | None:
    """A parked stream; None if it does not wait."""
    found = await list_streams(database, consumer, stream.stream_id)
    return next((each for each in found if each.key == stream), None)


async def list_messages(
    database: asyncpg.Pool | Connection, consumer: str, stream: StreamKey, messages_max: int
) -> Sequence[ParkedMessage]:
    """What waits of a stream, in the order of its versions."""
    rows = await database.fetch(MESSAGES, consumer, *stream, messages_max)
    return [to_parked_message(row) for row in rows]


async def list_actions(
    database: asyncpg.Pool | Connection, consumer: str, stream_id: UUID | None, actions_max: int
) -> Sequence[RecordedAction]:
    """What operators did to the streams that the consumer parked, or to one; newest first."""
    rows = await database.fetch(ACTIONS, consumer, stream_id, actions_max)
    return [RecordedAction(**row) for row in rows]


def to_parked_message(row: asyncpg.Record) -> ParkedMessage:
    record = IncomingRecord(
        topic=row["topic"],
        partition=row["partition"],
        offset=row["record_offset"],
        key=row["key"],
        value=row["value"],
        headers=[(name, value.encode()) for name, value in json.loads(row["headers"])],
    )
    return ParkedMessage(
        version=row["version"],
        event_id=row["event_id"],
        record=record,
        discarded=row["discarded"],
    )


async def edit(
    connection: Connection,
    consumer: str,
    stream: StreamKey,
    version: int,
    value: bytes,
    operator_action: OperatorAction,
) -> None:
    """Replace the value of a waiting message, in the caller's transaction.

    Raises:
        NotParked: no such message waits.
    """
    before = await hold_value(connection, consumer, stream, version)
    await connection.execute(EDIT, consumer, *stream, version, value)
    await write_audit(
        connection,
        consumer,
        stream,
        "edit",
        operator_action,
        version,
        before=before,
        after=value,
    )


async def discard(
    connection: Connection,
    consumer: str,
    stream: StreamKey,
    version: int,
    operator_action: OperatorAction,
) -> None:
    """Let the next redrive pass over a waiting message, in the caller's transaction.

    Raises:
        NotParked: no such message waits.
    """
    before = await hold_value(connection, consumer, stream, version)
    await connection.execute(DISCARD, consumer, *stream, version)
    await write_audit(
        connection, consumer, stream, "discard", operator_action, version, before=before
    )


async def request_redrive(
    connection: Connection, relay: str, stream: StreamKey, operator_action: OperatorAction
) -> None:
    """Ask the relay that parked a stream to send what waits, in the caller's transaction.

    Raises:
        NotParked: it does not wait.
    """
    await hold(connection, relay, stream)
    await connection.execute(REQUEST_REDRIVE, relay, *stream)
    await write_audit(connection, relay, stream, "redrive", operator_action, None)


async def hold_value(
    connection: Connection, consumer: str, stream: StreamKey, version: int
) -> bytes:
    """The value of a waiting message, whose stream is kept for this transaction alone.

    Raises:
        NotParked: no such message waits.
    """
    await hold(connection, consumer, stream)
    value: bytes | None = await connection.fetchval(VALUE, consumer, *stream, version)
    if value is None:
        raise NotParked(f"no version {version} of stream {stream.stream_id} waits")
    return value


async def release(
    connection: Connection, consumer: str, stream: StreamKey, versions: Sequence[int]
) -> None:
    """Delete these messages: they do not wait any more."""
    await connection.execute(RELEASE_MESSAGES, consumer, *stream, versions)


async def release_stream(connection: Connection, consumer: str, stream: StreamKey) -> None:
    """Unpark the stream, of which no message waits any more: the worker continues it."""
    await connection.execute(RELEASE_STREAM, consumer, *stream)


async def write_reason(
    connection: Connection, consumer: str, stream: StreamKey, reason: str
) -> None:
    """Replace the reason why the stream waits."""
    await connection.execute(GIVE_REASON, consumer, *stream, reason)


async def write_audit(
    connection: Connection,
    consumer: str,
    stream: StreamKey,
    action: str,
    operator_action: OperatorAction,
    version: int | None,
    *,
    before: bytes | None = None,
    after: bytes | None = None,
) -> None:
    """Record an operator's action permanently."""
    await connection.execute(
        WRITE_AUDIT,
        operator_action.by,
        action,
        consumer,
        *stream,
        version,
        operator_action.reason,
        before,
        after,
    )
