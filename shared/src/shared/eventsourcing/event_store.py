"""Streams of events in PostgreSQL: read one, append to one together with all that must follow.

So a request appends. A worker appends to all streams of its batch: `locked_streams`.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

import asyncpg
from aiokafka.partitioner import murmur2

from shared.eventsourcing.codec import Codec
from shared.eventsourcing.errors import Refused, StaleRead, VersionConflict
from shared.eventsourcing.recorded import Recorded, log_recorded
from shared.eventsourcing.state_cache import StateCache
from shared.messaging import messages, wire
from shared.messaging.messages import (
    IdempotencyKey,
    Metadata,
    PublicEvent,
    PublicRecord,
    RecordedEvent,
    StoredResponse,
)
from shared.messaging.topics import TOPICS
from shared.runtime import metrics, telemetry
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Connection
from shared.runtime.relay_notifier import RelayNotifier

E = TypeVar("E")

MESSAGE_BYTES_MAX = 256 * 1024
"""A larger record could be refused by the broker, and would block the outbox permanently."""
EVENT_TOO_LARGE = "event-too-large"

READ = """
    SELECT stream_id, events.version, event_id, type, schema_version, data, recorded_at
    FROM events
    JOIN streams USING (stream_id)
    WHERE stream_id = $1 AND category = $2 AND events.version >= $3
    ORDER BY events.version
    LIMIT $4
"""

VERSIONS = """
    SELECT stream_id, version FROM streams WHERE stream_id = ANY($1) AND category = $2
"""

READ_FROM = """
    SELECT stream_id, events.version, event_id, type, schema_version, data, recorded_at
    FROM unnest($1::uuid[], $2::integer[]) AS wanted (stream_id, first_version)
    JOIN events USING (stream_id)
    WHERE events.version >= first_version
    ORDER BY stream_id, events.version
"""

RETRIED, GIVEN_UP = "retried", "given-up"
CONFLICTS = metrics.Counter(
    "hometown.append.conflicts",
    "{conflict}",
    "Appends that lost a race with another writer: the command was retried, or given up (given-up)",
    ["category", "outcome"],
)

APPEND = """
    SELECT refusal, stream_version
    FROM try_append($1, $2, $3, $4::new_event[], $5, $6, $7::stored_answer, $8, $9)
"""


class KeyUsed(Exception):
    """Another request with this idempotency key was recorded first."""


class NewEvent(NamedTuple):
    """A value of the SQL type `new_event`: an event, and its outbox row unless it stays inside."""

    event_id: UUID
    type: str
    schema_version: int
    data: str
    topic: str | None = None
    partition: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: bytes | None = None
    traceparent: str | None = None


class EventStore(Generic[E]):
    """The streams of one category (one aggregate type).

    `publish` makes the public form of an event, or None; what it returns is stored wire-ready in
    the outbox by the same statement that stores the event.
    """

    def __init__(
        self,
        pool: asyncpg.Pool,
        *,
        category: str,
        source: str,
        codec: Codec[E],
        publish: Callable[[E], PublicEvent | None],
        relay_notifier: RelayNotifier,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._database: asyncpg.Pool | Connection = pool
        self.category = category
        self.source = source
        self._codec = codec
        self._publish = publish
        self._relay_notifier = relay_notifier
        self.now = now
        self.states = StateCache()
        self._is_bound = False
        for outcome in (RETRIED, GIVEN_UP):
            CONFLICTS.add(0, category, outcome)

    def within(self, connection: Connection) -> "EventStore[E]":
        """The same store in a transaction of the caller, which notifies the relay after its commit,
        and logs what was recorded."""
        bound = copy(self)
        bound._is_bound = True
        bound._database = connection
        bound._relay_notifier = RelayNotifier(None)
        return bound

    async def read(
        self, stream_id: UUID, first_version: int = 1, events_max: int | None = None
    ) -> list[RecordedEvent[E]]:
        """The events of a stream from a version on, oldest first; none if the stream has none."""
        rows = await self._database.fetch(READ, stream_id, self.category, first_version, events_max)
        return [self.to_recorded_event(row) for row in rows]

    async def find_versions(self, stream_ids: Iterable[UUID]) -> dict[UUID, int]:
        """The current versions of streams; one without events is absent."""
        rows = await self._database.fetch(VERSIONS, list(stream_ids), self.category)
        return {row["stream_id"]: row["version"] for row in rows}

    async def read_from(
        self, first_versions: Mapping[UUID, int]
    ) -> Mapping[UUID, Sequence[RecordedEvent[E]]]:
        """The events of streams, each from a version on, oldest first; one without any is absent.

        The streams are known to be of this category.
        """
        streams, versions = list(first_versions), list(first_versions.values())
        found: dict[UUID, list[RecordedEvent[E]]] = {}
        for row in await self._database.fetch(READ_FROM, streams, versions):
            found.setdefault(row["stream_id"], []).append(self.to_recorded_event(row))
        return found

    def to_recorded_event(self, row: asyncpg.Record) -> RecordedEvent[E]:
        """The event in a row of `events`."""
        return RecordedEvent(
            stream_id=row["stream_id"],
            version=row["version"],
            event_id=row["event_id"],
            event=self._codec.decode(row["type"], row["data"], row["schema_version"]),
            recorded_at=row["recorded_at"],
        )

    async def append(
        self,
        stream_id: UUID,
        expected_version: int,
        events: Sequence[E],
        *,
        metadata: Metadata,
        key: IdempotencyKey | None = None,
        answer: StoredResponse | None = None,
        read_versions: Mapping[UUID, int] | None = None,
    ) -> int:
        """Record events after `expected_version` (0: a new stream); return the new version.

        One statement, so one transaction and one round trip: the answer to repeat, the events and
        their outbox rows. Durable when it returns. Without events it only checks
        that the stream still has the expected version. `read_versions` are the versions of other
        streams that the decision was based on.

        Raises:
            VersionConflict: the stream has another version.
            StaleRead: one of `read_versions` has another version.
            KeyUsed: the idempotency key was recorded by another request.
            Refused: a public event is larger than MESSAGE_BYTES_MAX.
        """
        with telemetry.inner_span(f"append {self.category}") as span:
            span.set_attribute(telemetry.STREAM_ID, str(stream_id))
            now, began_at = self.now(), time.perf_counter()
            trace = telemetry.ids_of(span)
            new_events = [
                self.to_new_event(
                    stream_id, version, event, metadata, now, telemetry.current_traceparent()
                )
                for version, event in enumerate(events, start=expected_version + 1)
            ]
            outcome = await self._database.fetchrow(
                APPEND,
                stream_id,
                self.category,
                expected_version,
                new_events,
                dump_metadata(metadata, self.source, trace.get("trace_id")),
                now,
                response_row(key, answer),
                list(read_versions or ()),
                list((read_versions or {}).values()),
            )
            assert outcome is not None  # the function returns one row
            version = to_version(outcome, stream_id)
            span.set_attribute(telemetry.STREAM_VERSION, version)
        self._relay_notifier.notify()
        if not self._is_bound:
            recorded = [
                to_recorded(stream_id, version, each, metadata, trace)
                for version, each in enumerate(new_events, start=expected_version + 1)
            ]
            log_recorded(recorded, seconds=time.perf_counter() - began_at)
        return version

    def to_public_record(self, event: RecordedEvent[E], metadata: Metadata) -> PublicRecord | None:
        """The record as which an event leaves the service; None when it stays inside.

        The header with the version before it is added where that is known: by `append`, or by
        `history`.
        """
        public = self._publish(event.event)
        if public is None:
            return None
        headers = {
            messages.ID: str(event.event_id),
            messages.TYPE: public.type,
            messages.SOURCE: self.source,
            messages.TIME: rfc3339(event.recorded_at),
            messages.SPEC: messages.SPEC_VERSION,
            messages.SUBJECT: public.key,
            messages.SCHEMA_VERSION: str(public.schema_version),
            messages.STREAM_ID: str(event.stream_id),
            messages.STREAM_VERSION: str(event.version),
            messages.CORRELATION_ID: str(metadata.correlation_id),
            messages.CAUSATION_ID: str(metadata.causation_id),
            messages.CONTENT: messages.CONTENT_TYPE,
        }
        return PublicRecord(
            topic=public.topic,
            partition=get_partition(public.topic, public.key),
            key=public.key.encode(),
            value=public.value,
            headers=wire.to_headers(headers),
        )

    def to_new_event(
        self,
        stream_id: UUID,
        version: int,
        event: E,
        metadata: Metadata,
        now: datetime,
        traceparent: str | None,
        previous_version: int | None = None,
    ) -> NewEvent:
        """An event, to be written; without `previous_version` its header is added by `try_append`.

        Raises:
            Refused: the public event is larger than MESSAGE_BYTES_MAX.
        """
        recorded = RecordedEvent(
            stream_id=stream_id, version=version, event_id=new_id(), event=event, recorded_at=now
        )
        type_, data = self._codec.get_name(event), self._codec.encode(event).decode()
        private = NewEvent(recorded.event_id, type_, self._codec.get_version(type_), data)
        record = self.to_public_record(recorded, metadata)
        if record is None:
            return private
        if len(record.value) > MESSAGE_BYTES_MAX:
            raise Refused(
                EVENT_TOO_LARGE,
                f"{type_} would have {len(record.value)} bytes, and {MESSAGE_BYTES_MAX} are"
                " the most that can be published",
            )
        headers = list(record.headers)
        if traceparent is not None:
            headers.append((telemetry.TRACEPARENT, traceparent.encode()))
        if previous_version is not None:
            headers.append((messages.PREVIOUS_VERSION, b"%d" % previous_version))
        return private._replace(
            topic=record.topic,
            partition=record.partition,
            key=record.key,
            value=record.value,
            headers=wire.pack(headers, to_follow=1 if previous_version is None else 0),
            traceparent=traceparent if telemetry.is_sampled(traceparent) else None,
        )


@lru_cache(maxsize=10_000)
def get_partition(topic: str, key: str) -> int:
    """The partition of a key by Kafka's default partitioner (murmur2, as in the Java client)."""
    positive: int = murmur2(key.encode()) & 0x7FFFFFFF
    return positive % TOPICS[topic].partitions


def to_recorded(
    stream_id: UUID, version: int, event: NewEvent, metadata: Metadata, trace: Mapping[str, str]
) -> Recorded:
    """An event that was written, as the log names it."""
    return Recorded(
        stream_id=stream_id,
        stream_version=version,
        event_type=event.type,
        event_id=event.event_id,
        correlation_id=metadata.correlation_id,
        trace=trace,
    )


def dump_metadata(metadata: Metadata, source: str, trace_id: str | None) -> str:
    """The metadata of an event as JSON; the trace is named only if it is recorded.

    Every event has an actor: the caller of the request, or the service that reacted.
    """
    named = {
        "correlation_id": str(metadata.correlation_id),
        "causation_id": str(metadata.causation_id),
        "actor": metadata.actor or source,
    }
    return json.dumps(named | {"trace_id": trace_id} if trace_id else named)


def load_metadata(text: str) -> Metadata:
    """The ids in what `dump_metadata` made."""
    stored = json.loads(text)
    return Metadata(
        correlation_id=UUID(stored["correlation_id"]), causation_id=UUID(stored["causation_id"])
    )


def response_row(
    key: IdempotencyKey | None, answer: StoredResponse | None
) -> tuple[object, ...] | None:
    """A value of the SQL type `stored_answer`."""
    if key is None or answer is None:
        return None
    headers = json.dumps(dict(answer.headers))
    return (key.scope, key.key, key.fingerprint, answer.status, headers, answer.body)


def to_version(outcome: asyncpg.Record, stream_id: UUID) -> int:
    """The new version of a stream. Raises what a refusal of the SQL function means."""
    version: int = outcome["stream_version"]
    match outcome["refusal"]:
        case None:
            return version
        case "key-used":
            raise KeyUsed
        case "version":
            raise VersionConflict(stream_id, version)
        case "stale-read":
            raise StaleRead
        case unknown:
            raise AssertionError(f"unknown refusal {unknown}")


def rfc3339(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
