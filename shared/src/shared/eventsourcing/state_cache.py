"""The states of long streams as they were last folded: a decision reads only what is new."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from shared.eventsourcing.decider import Decider

S = TypeVar("S")

STREAM_EVENTS_MIN = 8
"""Shorter streams are not cached: most of them are never used again."""
VALUES_MAX = 300_000
"""Of all cached states together. The number of events that a state was folded from is no measure:
most of them leave nothing in it."""
VALUE_BYTES_MAX = 350
"""Of a value in the memory, on average: a full cache takes 105 MB, which the limit of a container
has room for."""
FIXED_VALUES = 4
"""The fixed fields of a state take as much as so many values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedStream:
    """The state after event number `version` of a stream, which is the event `event_id`.

    It has so many `values`: see `count_values`.
    """

    state: Any
    version: int
    event_id: UUID
    values: int


def count_values(decider: Decider[Any, S, Any], state: S) -> int:
    """Of a cached state: the fixed ones, and those that can be many."""
    return FIXED_VALUES + decider.count_values(state)


class StateCache:
    """The states that were used last, of the streams of one aggregate type.

    A cached state is a guess: it can include events of a transaction that was rolled back. The
    next read begins with the event `event_id`, and shows whether the stream still has it.
    """

    def __init__(self) -> None:
        self._streams: OrderedDict[UUID, FoldedStream] = OrderedDict()
        self._values = 0

    def find(self, stream_id: UUID) -> FoldedStream | None:
        return self._streams.get(stream_id)

    def keep(self, stream_id: UUID, folded: FoldedStream) -> None:
        """Cache a state as the last used one. The first used ones are evicted for it."""
        if folded.version < STREAM_EVENTS_MIN:
            return
        self.forget(stream_id)
        self._streams[stream_id] = folded
        self._values += folded.values
        while self._values > VALUES_MAX and len(self._streams) > 1:
            self.forget(next(iter(self._streams)))

    def forget(self, stream_id: UUID) -> None:
        if evicted := self._streams.pop(stream_id, None):
            self._values -= evicted.values
