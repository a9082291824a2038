"""What the observer has measured last, as it answers at `/lag`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter

from observer_svc.disk import Disk
from observer_svc.states import State
from shared.inbox.parked import ParkedCount
from shared.outbox.backlog import Backlog


@dataclass(frozen=True, slots=True)
class Place:
    """A consumer and a partition that it reads."""

    consumer: str
    topic: str
    partition: int

    @property
    def values(self) -> tuple[str, str, str]:
        """Of the attributes of a metric."""
        return self.consumer, self.topic, str(self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLag:
    """How far a consumer is behind in a partition, in records."""

    place: Place
    position: int
    end: int
    lag: int
    is_alive: bool
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProgress:
    """How far a consumer has come that keeps its offsets itself, by the clock of its database.

    `beat_seconds` is how long ago it gave a sign of life, and `commit_seconds` how long ago it
    committed. `event_seconds` is from the latest time of an event that it has counted to now,
    `watermark_seconds` from its watermark to that time. None: there is no such thing yet.
    """

    consumer: str
    beat_seconds: float
    commit_seconds: float | None
    event_seconds: float | None
    watermark_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayBacklog:
    """What waits for a relay; `name` is that of its process."""

    name: str
    database: str
    backlog: Backlog
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedStreams:
    """The streams that a consumer, or a relay, has parked."""

    database: str
    consumer: str
    count: ParkedCount


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that was measured at one time.

    `state` is the worst of all consumers and relays. `servers` has the reason why a server could
    not be measured, or not as a whole; or None. `clock_skew_seconds` is the clock of a database
    minus that of the observer. `disk` is that of DATA_FOLDER,
    or None.
    """

    measured_at: datetime
    state: State
    consumers: Sequence[ConsumerLag]
    progress: Sequence[ConsumerProgress]
    relays: Sequence[RelayBacklog]
    parked: Sequence[ParkedStreams]
    clock_skew_seconds: Mapping[str, float]
    servers: Mapping[str, str | None]
    disk: Disk | None


JSON = TypeAdapter(Report)
"""Between a report and its text."""
