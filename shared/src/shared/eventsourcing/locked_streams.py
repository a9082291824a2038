"""Many streams in one transaction: locked and read with one statement each, appended to with one.

A worker that takes a batch of messages decides on the streams of all of them. While they are
locked nothing can be recorded after what it has read, so there is no race to lose.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from opentelemetry.trace import Span

from shared.eventsourcing.errors import VersionConflict
from shared.eventsourcing.event_store import EventStore, NewEvent, dump_metadata, to_recorded
from shared.eventsourcing.recorded import Recorded
from shared.messaging.messages import Metadata
from shared.runtime import telemetry
from shared.runtime.postgres import Connection

E = TypeVar("E")

# In the order of ids: two transactions never wait for each other's locks.
LOCK = """
    SELECT stream_id, version, published_version
    FROM streams
    WHERE stream_id = ANY($1) AND category = $2
    ORDER BY stream_id
    FOR NO KEY UPDATE
"""

# Positions are given in the order of the arrays, which is that of the versions of each stream.
APPEND = """
    WITH changed AS (
        SELECT *
        FROM unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[])
            AS changed (stream_id, version_before, version, published_version)
    ), added AS (
        INSERT INTO streams (stream_id, category, version, published_version)
        SELECT stream_id, $1, version, published_version FROM changed WHERE version_before = 0
        ON CONFLICT DO NOTHING
        RETURNING stream_id
    ), moved AS (
        UPDATE streams
        SET version = changed.version, published_version = changed.published_version
        FROM changed
        WHERE streams.stream_id = changed.stream_id
          AND streams.version = changed.version_before AND changed.version_before > 0
        RETURNING streams.stream_id
    ), written AS (
        SELECT stream_id FROM added UNION ALL SELECT stream_id FROM moved
    ), new_events AS (
        SELECT *
        FROM unnest($7::uuid[], $8::integer[], $9::json[], $10::uuid[], $11::text[],
                    $12::smallint[], $13::json[], $14::text[], $15::smallint[], $16::bytea[],
                    $17::bytea[], $18::bytea[], $19::text[])
            WITH ORDINALITY AS new_event (stream_id, version, metadata, event_id, type,
                                          schema_version, data, topic, partition, key,
                                          value, headers, traceparent, number)
        JOIN written USING (stream_id)
    ), recorded AS (
        INSERT INTO events (stream_id, version, event_id, type, schema_version, data, metadata,
                            recorded_at)
        SELECT stream_id, version, event_id, type, schema_version, data, metadata, $6
        FROM new_events
        ORDER BY number
    ), published AS (
        INSERT INTO outbox (topic, partition, key, value, headers, traceparent, recorded_at)
        SELECT topic, partition, key, value, headers, traceparent, $6
        FROM new_events
        WHERE topic IS NOT NULL
        ORDER BY number
    )
    SELECT stream_id FROM written
"""

VERSION = "SELECT version FROM streams WHERE stream_id = $1"


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a stream: its version, and that of its last event which left the service."""

    version: int
    published_version: int


NO_EVENTS = Head(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(Generic[E]):
    """Events that follow `expected_version` of a stream; `span` is that of their cause."""

    stream_id: UUID
    expected_version: int
    events: Sequence[E]
    metadata: Metadata
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedStreams(Generic[E]):
    """Streams of a store to which no other transaction appends before that of `connection` ends."""

    store: EventStore[E]
    connection: Connection
    stream_ids: frozenset[UUID]
    heads: Mapping[UUID, Head]
    """Of those that have events. The others are not locked: `append` checks them."""

    @classmethod
    async def lock(
        cls, store: EventStore[E], connection: Connection, stream_ids: Iterable[UUID]
    ) -> "LockedStreams[E]":
        ids = frozenset(stream_ids)
        rows = await connection.fetch(LOCK, list(ids), store.category)
        heads = {row["stream_id"]: Head(row["version"], row["published_version"]) for row in rows}
        return cls(store=store, connection=connection, stream_ids=ids, heads=heads)

    async def append(self, appends: Sequence[Append[E]]) -> Sequence[Recorded]:
        """Record events in this order, and return them.

        One statement, and durable when the caller commits. Of a locked stream for which there are
        no events it only checks that it still is as it was.

        Raises:
            VersionConflict: a stream has another version.
            Refused: a public event is larger than MESSAGE_BYTES_MAX.
        """
        rows = NewRows(self.store, dict(self.heads))
        with ExitStack() as spans:
            for append in appends:
                name = f"append {self.store.category}"
                rows.add(append, spans.enter_context(telemetry.span_inside(append.span, name)))
            await self._write(rows)
            await self._check_absent(rows.changed.keys())
        return rows.recorded

    async def _write(self, rows: "NewRows[E]") -> None:
        if not rows.events:
            return
        changed = rows.changed
        written = await self.connection.fetch(
            APPEND,
            self.store.category,
            list(changed),
            [self.heads.get(stream_id, NO_EVENTS).version for stream_id in changed],
            [head.version for head in changed.values()],
            [head.published_version for head in changed.values()],
            rows.recorded_at,
            *zip(*rows.events, strict=True),
        )
        for stream_id in changed.keys() - {row["stream_id"] for row in written}:
            raise VersionConflict(stream_id, await self.connection.fetchval(VERSION, stream_id))

    async def _check_absent(self, changed: Set[UUID]) -> None:
        """To do nothing is a decision as well, and holds only while there is no such stream."""
        for stream_id in self.stream_ids - self.heads.keys() - changed:
            if version := await self.connection.fetchval(VERSION, stream_id):
                raise VersionConflict(stream_id, version)


class NewRows(Generic[E]):
    """What is to be written: events in their order, and the new heads of their streams."""

    def __init__(self, store: EventStore[E], heads: dict[UUID, Head]) -> None:
        self._store = store
        self.recorded_at = store.now()
        self.heads = heads
        self.events: list[tuple[object, ...]] = []
        self.recorded: list[Recorded] = []

    @property
    def changed(self) -> dict[UUID, Head]:
        """The new heads of the streams to which events are added."""
        return {each.stream_id: self.heads[each.stream_id] for each in self.recorded}

    def add(self, append: Append[E], span: Span) -> None:
        """Raises VersionConflict: the stream has another version. Raises Refused: see `append`."""
        stream_id, head = append.stream_id, self.heads.get(append.stream_id, NO_EVENTS)
        if append.expected_version != head.version:
            raise VersionConflict(stream_id, head.version)
        trace = telemetry.ids_of(span)
        metadata = dump_metadata(append.metadata, self._store.source, trace.get("trace_id"))
        for event in append.events:
            new_event = self._store.to_new_event(
                stream_id,
                head.version + 1,
                event,
                append.metadata,
                self.recorded_at,
                telemetry.find_traceparent(span),
                head.published_version,
            )
            head = follow(head, new_event)
            self.events.append((stream_id, head.version, metadata, *new_event))
            self.recorded.append(
                to_recorded(stream_id, head.version, new_event, append.metadata, trace)
            )
        self.heads[stream_id] = head
        span.set_attribute(telemetry.STREAM_ID, str(stream_id))
        span.set_attribute(telemetry.STREAM_VERSION, head.version)


def follow(head: Head, event: NewEvent) -> Head:
    """The end of a stream after one more event."""
    version = head.version + 1
    return Head(version, head.published_version if event.topic is None else version)
