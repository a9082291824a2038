"""Waits until nothing is in progress any more, and compares what the APIs return."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import httpx

from test_support.system.clients import Hometown, Json, sum_lag
from verification.load.compare import Observation, find_differences, observe
from verification.load.driver import Run
from verification.load.window import Window

LOOK_SECONDS = 0.5
SURE_SECONDS = 2.0
"""Analytics knows the ends of the topics as of a second ago, so one poll is not enough."""
UNCHANGED_SECONDS_MAX = 45
"""After this time without a change, differences are permanent. Longer than an order waits for its
credit, and than a killed process takes to restart."""
SETTLE_SECONDS_MAX = 600


class NotSettled(Exception):
    """The system did not become idle, or did not answer; the message has its last status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """`quiet_at` is when everything matched for the first time, on the monotonic clock."""

    observation: Observation
    differences: list[str]
    quiet_at: float


@dataclass(slots=True)
class Rest:
    """Since when the observations have been right, and since when unchanged."""

    right_since: float | None = None
    same_since: float = field(default_factory=time.monotonic)
    last: Observation | None = None

    def note(self, seen: Observation | None, found: Sequence[str]) -> None:
        """`seen` is None when a process did not answer."""
        now = time.monotonic()
        if seen is None or seen != self.last:
            self.same_since = now
        self.last = seen
        is_right = seen is not None and seen.lag == 0 and not found
        self.right_since = (self.right_since or now) if is_right else None

    @property
    def is_over(self) -> bool:
        """Right, or wrong and unchanged, for long enough to be sure."""
        if self.right_since is not None:
            return time.monotonic() >= self.right_since + SURE_SECONDS
        return time.monotonic() >= self.same_since + UNCHANGED_SECONDS_MAX


def wait_until_settled(
    hometown: Hometown, run: Run, window: Window, before: Json, report: Callable[[str], None]
) -> Settled:
    """Wait until everything matches and stays so, or nothing changes any more.

    Raises:
        NotSettled: neither within SETTLE_SECONDS_MAX.
    """
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    rest = Rest()
    while time.monotonic() < deadline:
        seen = try_observe(hometown, run, window)
        found = [] if seen is None else drop_duplicates(find_differences(run, window, before, seen))
        rest.note(seen, found)
        if seen is None:
            report("waiting: a process does not answer")
        elif rest.is_over:
            quiet_at = rest.right_since or rest.same_since
            return Settled(observation=seen, differences=found, quiet_at=quiet_at)
        else:
            report(f"waiting: {seen.pending} pending, lag {seen.lag}, {len(found)} differences")
        time.sleep(LOOK_SECONDS)
    status = rest.last.status if rest.last else "no answer"
    raise NotSettled(f"not idle within {SETTLE_SECONDS_MAX} s: {status}")


def try_observe(hometown: Hometown, run: Run, window: Window) -> Observation | None:
    """None when a process does not answer."""
    try:
        return observe(hometown, run, window)
    except httpx.HTTPError:
        return None


def drop_duplicates(found: Sequence[str]) -> list[str]:
    """An hour is read once for each split, so its total can differ as often."""
    return list(dict.fromkeys(found))


def wait_until_idle(hometown: Hometown) -> Json:
    """The status, once analytics has had nothing left to count for SURE_SECONDS.

    Raises:
        NotSettled: that did not happen within SETTLE_SECONDS_MAX.
    """
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    idle_since: float | None = None
    while time.monotonic() < deadline:
        status = try_read_status(hometown)
        now = time.monotonic()
        is_idle = status is not None and sum_lag(status) == 0
        idle_since = (idle_since or now) if is_idle else None
        if status is not None and idle_since is not None and now >= idle_since + SURE_SECONDS:
            return status
        time.sleep(LOOK_SECONDS)
    raise NotSettled(f"analytics has been behind for {SETTLE_SECONDS_MAX} s (see: make status)")


def try_read_status(hometown: Hometown) -> Json | None:
    """None when analytics does not answer."""
    try:
        return hometown.status()
    except httpx.HTTPError:
        return None


def is_late(status: Json, before: datetime) -> bool:
    """Whether all orders from before that time would be late."""
    watermark = status["watermark"]
    return watermark is not None and datetime.fromisoformat(watermark) >= before
