"""A value that changes at instants, such as an address: what held when."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Timeline(Generic[V]):
    """`changes` are (since, value), oldest first. Changes may be announced in any order."""

    changes: tuple[tuple[datetime, V], ...] = ()

    def at(self, instant: datetime) -> V | None:
        """What held at an instant; None before the first change."""
        held = [value for since, value in self.changes if since <= instant]
        return held[-1] if held else None

    @property
    def latest(self) -> V | None:
        """What holds after all changes known so far."""
        return self.changes[-1][1] if self.changes else None

    def changed(self, since: datetime, value: V) -> "Timeline[V]":
        """With one more change. Of two at one instant the later announced one counts."""
        # A stable sort: what was announced before stays before.
        return Timeline(tuple(sorted([*self.changes, (since, value)], key=lambda each: each[0])))
