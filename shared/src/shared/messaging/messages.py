"""The values that travel: a recorded event inside a service, a message between services."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

E = TypeVar("E")

Header = tuple[str, bytes]
ReadHeader = tuple[str, bytes | None]
"""As others may have written it."""

CONTENT_TYPE = "application/json"
SPEC_VERSION = "1.0"

# Headers in the binary mode of the CloudEvents Kafka binding; from ce_schemaversion on our own.
ID = "ce_id"
TYPE = "ce_type"
SOURCE = "ce_source"
TIME = "ce_time"
SPEC = "ce_specversion"
SUBJECT = "ce_subject"
SCHEMA_VERSION = "ce_schemaversion"
STREAM_ID = "ce_streamid"
STREAM_VERSION = "ce_streamversion"
CORRELATION_ID = "ce_correlationid"
CAUSATION_ID = "ce_causationid"
PREVIOUS_VERSION = "ce_previousversion"
"""The version of the stream's message before this one; 0 for its first. Added by `append`."""
CONTENT = "content-type"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Why an event happened: the first cause of a whole story, and the direct one.

    `actor` is the subject of the token of a request; None for what a service does by itself.
    """

    correlation_id: UUID
    causation_id: UUID
    actor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent(Generic[E]):
    """An event as it stands in its stream."""

    stream_id: UUID
    version: int
    event_id: UUID
    event: E
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicEvent:
    """What the outside may know of an event: `value` holds the JSON bytes of the contract."""

    topic: str
    key: str
    type: str
    value: bytes
    schema_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRecord:
    """A public event as it leaves the service."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    headers: Sequence[Header]


class StreamKey(NamedTuple):
    """A stream as its readers know it: those of two services can have one id."""

    topic: str
    stream_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A public event as a consumer of another service (or of this one) reads it.

    `data` holds the JSON bytes; the consumer decodes them into its own view of the contract.
    """

    topic: str
    partition: int
    offset: int
    key: str
    event_id: UUID
    type: str
    schema_version: int
    stream_id: UUID
    stream_version: int
    previous_version: int | None
    correlation_id: UUID
    time: datetime
    traceparent: str | None
    data: bytes

    @property
    def stream(self) -> StreamKey:
        return StreamKey(self.topic, self.stream_id)

    @property
    def metadata(self) -> Metadata:
        """The metadata of whatever this message causes."""
        return Metadata(correlation_id=self.correlation_id, causation_id=self.event_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """An HTTP answer as data, so that it can be stored and repeated."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A client's name for one request; another request under it has another `fingerprint`."""

    scope: str
    key: str
    fingerprint: bytes
    former_fingerprint: bytes | None = None
    """What an earlier release stored for the same request; None if it was no other."""
