"""A value that changes at instants, such as an address: what held when."""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

V = TypeVar("V")

PRECISION = timedelta(milliseconds=1)
"""Of the times of facts: wherever they are compared, what is finer makes no difference."""

CHANGES_MAX = 10_000
"""Of one value: `decide` refuses the next one, so it bounds the state and what a caller can add."""
CHUNK_CHANGES_MAX = 128


def round_down(instant: datetime) -> datetime:
    """The instant in whole milliseconds."""
    return instant.replace(microsecond=instant.microsecond // 1_000 * 1_000)


@dataclass(frozen=True, slots=True)
class Timeline(Generic[V]):
    """Changes, (since, value), oldest first. They may be announced in any order.

    They are in chunks, none of them empty, so that a changed copy shares what did not change: the
    fold of thousands of changes would otherwise grow with the square of their number. Instants are
    compared in milliseconds; events of before these were rounded can have finer ones.
    """

    chunks: tuple[tuple[tuple[datetime, V], ...], ...] = ()

    @classmethod
    def begin(cls, since: datetime, value: V) -> "Timeline[V]":
        """With its first value."""
        return cls(()).changed(since, value)

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def at(self, instant: datetime) -> V | None:
        """What held at an instant; None before the first change."""
        instant = round_down(instant)
        begun = bisect_right(self.chunks, instant, key=get_begin)
        if not begun:
            return None
        chunk = self.chunks[begun - 1]
        return chunk[bisect_right(chunk, instant, key=get_since) - 1][1]

    @property
    def latest(self) -> V:
        """What holds after all changes known so far, of which there is at least one."""
        return self.chunks[-1][-1][1]

    @property
    def is_full(self) -> bool:
        """Whether there are CHANGES_MAX changes after the first value."""
        return len(self) > CHANGES_MAX

    def changed(self, since: datetime, value: V) -> "Timeline[V]":
        """With one more change. Of two at one instant the later announced one counts."""
        since = round_down(since)
        place = max(bisect_right(self.chunks, since, key=get_begin) - 1, 0)
        before = self.chunks[place] if self.chunks else ()
        within = bisect_right(before, since, key=get_since)
        after = (*before[:within], (since, value), *before[within:])
        return Timeline((*self.chunks[:place], *split(after), *self.chunks[place + 1 :]))


def split(chunk: tuple[tuple[datetime, V], ...]) -> tuple[tuple[tuple[datetime, V], ...], ...]:
    """A chunk as one, or as two when it has become too large."""
    if len(chunk) <= CHUNK_CHANGES_MAX:
        return (chunk,)
    middle = len(chunk) // 2
    return chunk[:middle], chunk[middle:]


def get_begin(chunk: tuple[tuple[datetime, object], ...]) -> datetime:
    return chunk[0][0]


def get_since(change: tuple[datetime, object]) -> datetime:
    return change[0]
