"""A value that changes at instants, such as an address: what held when."""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

V = TypeVar("V")

PRECISION = timedelta(milliseconds=1)
"""Of the times of facts: wherever they are compared, what is finer makes no difference."""


def round_down(instant: datetime) -> datetime:
    """The instant in whole milliseconds."""
    return instant.replace(microsecond=instant.microsecond // 1_000 * 1_000)


@dataclass(frozen=True, slots=True)
class Timeline(Generic[V]):
    """`changes` are (since, value), oldest first. Changes may be announced in any order.

    Instants are compared in milliseconds; events of before these were rounded can have finer ones.
    """

    changes: tuple[tuple[datetime, V], ...] = ()

    def at(self, instant: datetime) -> V | None:
        """What held at an instant; None before the first change."""
        held = bisect_right(self.changes, round_down(instant), key=get_since)
        return self.changes[held - 1][1] if held else None

    @property
    def latest(self) -> V | None:
        """What holds after all changes known so far."""
        return self.changes[-1][1] if self.changes else None

    def changed(self, since: datetime, value: V) -> "Timeline[V]":
        """With one more change. Of two at one instant the later announced one counts."""
        since = round_down(since)
        place = bisect_right(self.changes, since, key=get_since)
        return Timeline((*self.changes[:place], (since, value), *self.changes[place:]))


def get_since(change: tuple[datetime, object]) -> datetime:
    return change[0]
