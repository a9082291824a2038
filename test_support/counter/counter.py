"""A counter: the smallest aggregate, to test the mechanisms without a business."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import asyncpg

from shared.eventsourcing.codec import Codec
from shared.eventsourcing.event_store import EventStore
from shared.messaging.messages import Metadata, PublicEvent
from shared.runtime.identifiers import new_id
from shared.runtime.relay_notifier import RelayNotifier

TOPIC = "users.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    counter_id: UUID
    number: int


CODEC: Codec[Counted] = Codec({"counted": Counted})


def publish(event: Counted) -> PublicEvent:
    return CODEC.to_public_event(event, topic=TOPIC, key=str(event.counter_id))


def store_of(
    pool: asyncpg.Pool,
    *,
    publish: Callable[[Counted], PublicEvent | None] = publish,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> EventStore[Counted]:
    """The counters of a database; its notifications reach no relay."""
    return EventStore(
        pool,
        category="counter",
        source="test",
        codec=CODEC,
        publish=publish,
        relay_notifier=RelayNotifier(None),
        now=now,
    )


def counted(counter_id: UUID, *numbers: int) -> list[Counted]:
    return [Counted(counter_id=counter_id, number=number) for number in numbers]


def some_metadata() -> Metadata:
    return Metadata(correlation_id=new_id(), causation_id=new_id())
