"""The business times of a run: a window of a past day, so short that none of its orders is late."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
MILLISECOND = timedelta(milliseconds=1)

FIRST_DAY = datetime(2016, 11, 12, tzinfo=UTC)
"""The window of a fresh system: the day after the demonstration's."""
FUTURE_MAX = timedelta(minutes=5)
"""The services refuse times further ahead."""
LATENESS_MIN = timedelta(minutes=30)
SLACK = timedelta(minutes=5)
"""How much shorter the window is than the lateness that analytics allows."""

LATE_SHARE, WHOLE_MINUTE_SHARE, BORDER_SHARE = 0.12, 0.05, 0.03
USUALLY_LATE = timedelta(seconds=20)
"""How long an order usually takes to arrive, on average."""


class NoWindow(Exception):
    """There is no past time left for orders of this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """`gap` is an unused whole hour; orders begin one and a half hours after its start.

    The window is shorter than the lateness: none of its orders is late, in any order of arrival.
    Orders of the gap's first half are late once the window is counted.
    """

    gap: datetime
    lateness: timedelta

    @property
    def begins_at(self) -> datetime:
        return self.gap + HOUR + 30 * MINUTE

    @property
    def ends_at(self) -> datetime:
        return self.begins_at + self.lateness - SLACK

    @property
    def late_before(self) -> datetime:
        return self.gap + HOUR / 2

    @property
    def hours(self) -> list[datetime]:
        """All hours that the run can change, and the gap, which must stay empty."""
        count = -(-(self.ends_at - self.gap) // HOUR)
        return [self.gap + number * HOUR for number in range(count)]

    def at(self, progress: float) -> datetime:
        """The business time at `progress` of the run, from 0 to 1."""
        return floor_to_milliseconds(self.begins_at + progress * (self.ends_at - self.begins_at))

    def ordered_at(self, rng: Random, progress: float) -> datetime:
        """Mostly a few seconds ago; sometimes long ago, or exactly at the border of an hour."""
        now, kind = self.at(progress), rng.random()
        if kind < LATE_SHARE:
            return self.between(rng, self.begins_at, now)
        if kind < LATE_SHARE + WHOLE_MINUTE_SHARE:
            return max(self.begins_at, floor_to_minutes(now))
        if kind < LATE_SHARE + WHOLE_MINUTE_SHARE + BORDER_SHARE:
            border = self.gap + (now - self.gap) // HOUR * HOUR - rng.choice((0, 1)) * MILLISECOND
            return max(self.begins_at, border)
        ago = timedelta(seconds=rng.expovariate(1 / USUALLY_LATE.total_seconds()))
        return max(self.begins_at, floor_to_milliseconds(now - ago))

    def changed_at(self, rng: Random, progress: float) -> datetime:
        """A whole minute: half of the changes are effective now, a third since long ago, and the
        rest in the future."""
        kind = rng.random()
        if kind < 1 / 2:
            return floor_to_minutes(self.at(progress))
        if kind < 5 / 6:
            return floor_to_minutes(self.between(rng, self.gap + HOUR, self.at(progress)))
        return floor_to_minutes(self.between(rng, self.at(progress), self.ends_at))

    def too_late(self, rng: Random) -> datetime:
        """A time in the gap at which orders are late once the window is counted."""
        return self.between(rng, self.gap, self.late_before)

    @staticmethod
    def between(rng: Random, first: datetime, last: datetime) -> datetime:
        return floor_to_milliseconds(first + rng.random() * (last - first))


def floor_to_milliseconds(instant: datetime) -> datetime:
    """The precision of analytics."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def floor_to_minutes(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0)


def find_window(newest: datetime | None, lateness: timedelta, now: datetime) -> Window:
    """The first window in which nothing was ordered yet; `newest` is the newest order's time.

    Raises:
        NoWindow: it would reach into the future, or the lateness leaves no room for one.
    """
    if lateness < LATENESS_MIN:
        raise NoWindow(f"a lateness of {lateness} is too short: at least {LATENESS_MIN}")
    gap = FIRST_DAY if newest is None else max(FIRST_DAY, floor_to_hours(newest) + HOUR)
    window = Window(gap=gap, lateness=lateness)
    if window.ends_at > now + FUTURE_MAX:
        raise NoWindow("there are orders of today, and no hours after them yet: make clean up")
    return window


def floor_to_hours(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0)
