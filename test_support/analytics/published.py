"""Histories as the services publish them: as records, at a time and under ids of their own."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4, uuid5

from aiokafka import AIOKafkaProducer

from shared.eventsourcing.event_store import get_partition
from test_support.analytics.histories import Event

IDS = ("user_id", "item_id", "order_id")
TIMES = ("ordered_at", "effective_at")
STREAM = {"users.v1": "user_id", "items.v1": "item_id", "orders.v1": "order_id"}
"""The field that names the stream of a topic's events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Another day, on which other people do the same: several tests share one broker."""

    namespace: UUID
    days: int

    @classmethod
    def on(cls, days: int) -> "Elsewhere":
        return cls(namespace=uuid4(), days=days)

    def events(self, events: Iterable[Event]) -> list[Event]:
        return [
            replace(
                event,
                key=self.id(event.key),
                data=self._changed(event.data) if isinstance(event.data, dict) else event.data,
            )
            for event in events
        ]

    def id(self, known: str) -> str:
        return str(uuid5(self.namespace, known))

    def time(self, known: datetime) -> datetime:
        return known + timedelta(days=self.days)

    def _changed(self, data: dict[str, Any]) -> dict[str, Any]:
        changed = {name: self._value(name, value) for name, value in data.items()}
        if "lines" in changed:
            changed["lines"] = [self._changed(line) for line in changed["lines"]]
        return changed

    def _value(self, name: str, value: Any) -> Any:
        if name in IDS:
            return self.id(value)
        return self.time(datetime.fromisoformat(value)).isoformat() if name in TIMES else value


def headers_of(event: Event) -> list[tuple[str, bytes]]:
    """All headers that a relay sends, besides the fields of the event."""
    stream = json.loads(event.value)[STREAM[event.topic]]
    more = {
        "ce_streamid": stream,
        "ce_correlationid": stream,
        "ce_time": "2016-11-11T00:00:00Z",
        "ce_previousversion": str(event.version - 1),
    }
    return [*event.headers, *((name, value.encode()) for name, value in more.items())]


async def publish(producer: AIOKafkaProducer, events: Sequence[Event]) -> None:
    """Send events in their order; returns when all are acknowledged."""
    for event in events:
        await producer.send(
            event.topic,
            event.value,
            event.key.encode(),
            partition=get_partition(event.topic, event.key),
            headers=headers_of(event),
        )
    await producer.flush()
