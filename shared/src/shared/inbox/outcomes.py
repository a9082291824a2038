"""What became of the messages of a batch; it is counted and logged once the batch is committed."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from shared.messaging.messages import Message
from shared.runtime import logs, metrics, telemetry

MESSAGES = metrics.Count(
    "hometown.inbox.messages",
    "{message}",
    "Messages that were consumed: applied, repeated, waiting or parked; and dead letters",
)

Outcome = Literal["applied", "repeated", "waiting", "parked", "dead-letter"]

log = logging.getLogger(__name__)


class Outcomes:
    """Of one attempt at a batch; an attempt that is rolled back reports nothing."""

    def __init__(self) -> None:
        self._counted: Counter[tuple[str, Outcome]] = Counter()
        self._decided: list[Message] = []

    def add(self, message: Message, outcome: Outcome) -> None:
        self._counted[message.topic, outcome] += 1

    def add_decided(self, messages: Iterable[Message]) -> None:
        """Messages that events were recorded for; the others only changed tables."""
        self._decided += messages

    def report(self) -> None:
        """Count all messages, and log a line for each that was decided on."""
        for (topic, outcome), number in self._counted.items():
            count(topic, outcome, number)
        if self._decided and log.isEnabledFor(logging.INFO):
            log.info("decided", extra={logs.EACH: [to_fields(each) for each in self._decided]})


def begin_counts(topics: Iterable[str]) -> None:
    """Expose zeros: what Prometheus sees first is no increase, whatever its value."""
    for topic in topics:
        for outcome in get_args(Outcome):
            count(topic, outcome, 0)


def count(topic: str, outcome: Outcome, number: int = 1) -> None:
    MESSAGES.add(number, {"topic": topic, "outcome": outcome})


def to_fields(message: Message) -> Mapping[str, str | int]:
    """What names a message in a line of the log."""
    return {
        "topic": message.topic,
        "type": message.type,
        "event_id": str(message.event_id),
        "stream_id": str(message.stream_id),
        "stream_version": message.stream_version,
        **telemetry.to_fields(message.traceparent),
    }
