"""Compares what was committed with what was delivered, and judges the difference.

Every event carries the hash of its predecessor, so that each stream verifies itself: an unbroken
chain has no hole and no inversion, whatever the writers remember.
"""

import hashlib
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from uuid import UUID

from shared.eventsourcing.codec import Codec
from shared.messaging.messages import PublicEvent

TOPIC = "users.v1"

CAUSE_SECONDS = 1.0
"""A disturbance can be noted this long before the last record that the disturbed relay sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """The one event of the stress run. `predecessor` is the digest of the event before it."""

    stream_id: UUID
    version: int
    predecessor: str


CODEC: Codec[Linked] = Codec({"linked": Linked})


def publish(event: Linked) -> PublicEvent:
    return CODEC.to_public_event(event, topic=TOPIC, key=str(event.stream_id))


def digest(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()


def chain(stream_id: UUID, version: int, last: str, count: int) -> list[Linked]:
    """The next events of a stream whose last one has this version and digest."""
    events: list[Linked] = []
    for number in range(version + 1, version + 1 + count):
        events.append(Linked(stream_id=stream_id, version=number, predecessor=last))
        last = digest(CODEC.encode(events[-1]))
    return events


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One event as the writers, the store or the consumer have it; equal entries agree."""

    stream_id: UUID
    version: int
    digest: str


@dataclass(slots=True)
class Memory:
    """What the writers know about their own transactions; times in seconds since 1970."""

    committed_at: dict[Entry, float] = field(default_factory=dict)
    """When COMMIT was sent, for each commit that was acknowledged."""
    unsure: set[Entry] = field(default_factory=set)
    """The acknowledgement of COMMIT was lost: its outcome is unknown."""
    races_lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A record in the order of its partition; `at` is when the broker appended it."""

    entry: Entry
    predecessor: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All but the first three must be 0; `duplicates` can be more after a disturbance."""

    committed: int
    delivered: int
    duplicates: int
    duplicates_without_cause: int
    lost: int
    phantom: int
    inversions: int
    """First deliveries after a later version of the same stream."""
    broken_links: int
    """Places where a stream's chain is broken, in the event store or as first delivered."""
    misremembered: int
    """Acknowledged commits that are not in the event store, and events that no writer knows."""

    @property
    def is_good(self) -> bool:
        allowed = ("committed", "delivered", "duplicates")
        return all(
            getattr(self, each.name) == 0 for each in fields(self) if each.name not in allowed
        )


def judge(
    stored: Sequence[tuple[Entry, str]],
    memory: Memory,
    deliveries: Sequence[Delivery],
    disturbed_at: Sequence[float],
) -> Verdict:
    """Compare the store, the writers' memory and the deliveries.

    `stored` are the entries of the event store with their predecessors, by stream and version;
    `disturbed_at` are the instants at which a relay or the broker was killed, frozen or woken.
    """
    committed = {entry for entry, _ in stored}
    remembered = memory.committed_at.keys()
    first = find_first_deliveries(deliveries)
    return Verdict(
        committed=len(committed),
        delivered=len(deliveries),
        duplicates=len(deliveries) - len(first),
        duplicates_without_cause=count_without_cause(deliveries, first, disturbed_at),
        lost=len(committed - first.keys()),
        phantom=len(first.keys() - committed),
        inversions=count_inversions(first),
        broken_links=count_broken_links(stored)
        + count_broken_links((entry, delivery.predecessor) for entry, delivery in first.items()),
        misremembered=len(remembered - committed) + len(committed - remembered - memory.unsure),
    )


def find_first_deliveries(deliveries: Iterable[Delivery]) -> dict[Entry, Delivery]:
    """The first delivery of each entry, in the order of delivery."""
    first: dict[Entry, Delivery] = {}
    for delivery in deliveries:
        first.setdefault(delivery.entry, delivery)
    return first


def count_without_cause(
    deliveries: Iterable[Delivery], first: Mapping[Entry, Delivery], disturbed_at: Sequence[float]
) -> int:
    """Repeated deliveries with no disturbance between the first one and the repetition."""

    def has_cause(repeated: Delivery) -> bool:
        began = first[repeated.entry].at - CAUSE_SECONDS
        return any(began <= disturbed <= repeated.at for disturbed in disturbed_at)

    repeated = [each for each in deliveries if each is not first[each.entry]]
    return sum(not has_cause(each) for each in repeated)


def count_inversions(entries: Iterable[Entry]) -> int:
    """Entries that come after a later version of their stream."""
    newest: dict[UUID, int] = {}
    inverted = 0
    for entry in entries:
        inverted += entry.version < newest.get(entry.stream_id, 0)
        newest[entry.stream_id] = max(entry.version, newest.get(entry.stream_id, 0))
    return inverted


def count_broken_links(entries: Iterable[tuple[Entry, str]]) -> int:
    """Entries whose predecessor is not the entry before them in their stream."""
    last: dict[UUID, str] = {}
    broken = 0
    for entry, predecessor in entries:
        broken += predecessor != last.get(entry.stream_id, "")
        last[entry.stream_id] = entry.digest
    return broken


def compute_delays(memory: Memory, first: Mapping[Entry, Delivery]) -> dict[Entry, float]:
    """Seconds from the sending of COMMIT to the broker's append, of what was delivered."""
    return {
        entry: first[entry].at - committed_at
        for entry, committed_at in memory.committed_at.items()
        if entry in first
    }


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` (0 to 1) of the sorted values do not exceed; NaN of none."""
    if not values:
        return math.nan
    return values[max(0, math.ceil(part * len(values)) - 1)]


def count_most_within(instants: Iterable[float], seconds: float) -> int:
    """How many instants fall into the fullest of all periods of this length."""
    most, period = 0, deque[float]()
    for instant in sorted(instants):
        period.append(instant)
        while instant - period[0] >= seconds:
            period.popleft()
        most = max(most, len(period))
    return most
