"""What became of messages: counted and logged once it is committed."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from opentelemetry.trace import Span

from shared.eventsourcing.recorded import Recorded, log_recorded
from shared.messaging.messages import Message
from shared.runtime import logs, metrics, telemetry

MESSAGES = metrics.Counter(
    "hometown.inbox.messages",
    "{message}",
    "Messages by what a worker has committed: applied, repeated, waiting, parked or dead-letter;"
    " one that is malformed or poison is dead-letter, and can be applied or parked as well",
    ["topic", "outcome"],
)

Outcome = Literal["applied", "repeated", "waiting", "parked", "dead-letter"]

log = logging.getLogger(__name__)


class Effects(NamedTuple):
    """What reactions did: the events that they recorded, and the span of each message."""

    recorded: Sequence[Recorded]
    spans: Mapping[UUID, Span]


NO_EFFECTS = Effects((), {})


class Outcomes:
    """What becomes of the messages of a batch, if it is committed."""

    def __init__(self) -> None:
        self.applied: list[Message] = []
        self.effects = NO_EFFECTS
        self._all: list[tuple[Message, Outcome]] = []
        self._parked: list[tuple[Message, str]] = []

    def add(self, message: Message, outcome: Outcome) -> None:
        self._all.append((message, outcome))
        if outcome == "applied":
            self.applied.append(message)

    def add_parked(self, message: Message, reason: str) -> None:
        """A message that parks its stream; the reason quotes none of it."""
        self.add(message, "parked")
        self._parked.append((message, reason))

    def report(self, consumer: str, seconds: float) -> None:
        """Count the messages, and write a line for each of them and for each recorded event."""
        counts = Counter((message.topic, outcome) for message, outcome in self._all)
        for (topic, outcome), number in counts.items():
            MESSAGES.add(number, topic, outcome)
        if log.isEnabledFor(logging.INFO):
            spans = self.effects.spans
            each = [
                {**to_fields(message, spans.get(message.event_id)), "outcome": outcome}
                for message, outcome in self._all
            ]
            log.info("consumed", extra={"consumer": consumer, "seconds": seconds, logs.EACH: each})
        log_recorded(self.effects.recorded, consumer=consumer, seconds=seconds)
        for message, reason in self._parked:
            log_parked(consumer, message, reason)


def log_parked(consumer: str, message: Message, reason: str) -> None:
    """Write a line about a message that has parked its stream."""
    about = {"consumer": consumer, **to_fields(message)}
    log.error("the stream is parked: %s", reason, extra=about)


def expose_zeros(topics: Iterable[str]) -> None:
    """Begin each series: what appears with another value is no increase for Prometheus."""
    for topic in topics:
        for outcome in get_args(Outcome):
            MESSAGES.add(0, topic, outcome)


def to_fields(message: Message, span: Span | None = None) -> dict[str, object]:
    """Name a message in a line of the log, with the span of its processing or else its record's."""
    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "event_type": message.type,
        "event_id": message.event_id,
        "stream_id": message.stream_id,
        "stream_version": message.stream_version,
        "correlation_id": message.correlation_id,
        **(telemetry.ids_in(message.traceparent) if span is None else telemetry.ids_of(span)),
    }
