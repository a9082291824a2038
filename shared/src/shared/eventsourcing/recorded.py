"""Events that were recorded, as lines of the log name them; what is in them stays in the store."""

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from shared.runtime import logs

log = logging.getLogger(__name__)


class Recorded(NamedTuple):
    """An event and its cause; `trace` has the ids of the span, if it is recorded."""

    stream_id: UUID
    stream_version: int
    event_type: str
    event_id: UUID
    correlation_id: UUID
    trace: Mapping[str, str]

    @property
    def fields(self) -> dict[str, object]:
        """What names it in a line of the log."""
        return {
            "stream_id": self.stream_id,
            "stream_version": self.stream_version,
            "event_type": self.event_type,
            "event_id": self.event_id,
            "correlation_id": self.correlation_id,
            **self.trace,
        }


def log_recorded(events: Sequence[Recorded], **common: object) -> None:
    """Write a line for each event, after its commit; `common` are fields of them all."""
    if events and log.isEnabledFor(logging.INFO):
        log.info("recorded", extra={**common, logs.EACH: [each.fields for each in events]})
