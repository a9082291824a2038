"""Waits until nothing is under way any more, and looks whether all is as it must be."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import httpx

from test_support.system.clients import Hometown, Json
from verification.load.compare import Observation, differences, lag_of, observe
from verification.load.driver import Run
from verification.load.window import Window

LOOK_SECONDS = 0.5
SURE_SECONDS = 2.0
"""Analytics knows the ends of the topics as of a second ago, so one look is not enough."""
UNCHANGED_SECONDS_MAX = 45
"""Nothing has changed for so long: what differs now will differ for ever. Longer than an order
waits for its credit, and than a killed process is away."""
SETTLE_SECONDS_MAX = 600


class NotSettled(Exception):
    """The system did not come to rest, or did not answer; the message says what was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """`quiet_at` is when all was right for the first time, on the monotonic clock."""

    observation: Observation
    differences: list[str]
    quiet_at: float


@dataclass(slots=True)
class Rest:
    """Since when what is seen has been right, and since when it has been the same."""

    right_since: float | None = None
    same_since: float = field(default_factory=time.monotonic)
    last: Observation | None = None

    def note(self, seen: Observation | None, found: Sequence[str]) -> None:
        """`seen` is None when somebody did not answer."""
        now = time.monotonic()
        if seen is None or seen != self.last:
            self.same_since = now
        self.last = seen
        is_right = seen is not None and seen.lag == 0 and not found
        self.right_since = (self.right_since or now) if is_right else None

    @property
    def is_over(self) -> bool:
        """Right for long enough to be sure, or wrong for long enough."""
        if self.right_since is not None:
            return time.monotonic() >= self.right_since + SURE_SECONDS
        return time.monotonic() >= self.same_since + UNCHANGED_SECONDS_MAX


def wait_until_settled(
    hometown: Hometown, run: Run, window: Window, before: Json, told: Callable[[str], None]
) -> Settled:
    """As soon as all is right and stays so, or as soon as nothing changes any more.

    Raises:
        NotSettled: neither within SETTLE_SECONDS_MAX.
    """
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    rest = Rest()
    while time.monotonic() < deadline:
        seen = observed(hometown, run, window)
        found = [] if seen is None else unique(differences(run, window, before, seen))
        rest.note(seen, found)
        if seen is None:
            told("waiting: somebody does not answer")
        elif rest.is_over:
            quiet_at = rest.right_since or rest.same_since
            return Settled(observation=seen, differences=found, quiet_at=quiet_at)
        else:
            told(f"waiting: {seen.pending} pending, lag {seen.lag}, {len(found)} differences")
        time.sleep(LOOK_SECONDS)
    status = rest.last.status if rest.last else "no answer"
    raise NotSettled(f"not at rest within {SETTLE_SECONDS_MAX} s: {status}")


def observed(hometown: Hometown, run: Run, window: Window) -> Observation | None:
    """None when somebody does not answer."""
    try:
        return observe(hometown, run, window)
    except httpx.HTTPError:
        return None


def unique(found: Sequence[str]) -> list[str]:
    """An hour is asked for once for each split, so that its total may differ as often."""
    return list(dict.fromkeys(found))


def wait_until_idle(hometown: Hometown) -> Json:
    """The status when analytics has counted all there is for SURE_SECONDS.

    Raises:
        NotSettled: it has not within SETTLE_SECONDS_MAX.
    """
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    idle_since: float | None = None
    while time.monotonic() < deadline:
        status = status_now(hometown)
        now = time.monotonic()
        is_idle = status is not None and lag_of(status) == 0
        idle_since = (idle_since or now) if is_idle else None
        if status is not None and idle_since is not None and now >= idle_since + SURE_SECONDS:
            return status
        time.sleep(LOOK_SECONDS)
    raise NotSettled(f"analytics is behind for {SETTLE_SECONDS_MAX} s (see: make status)")


def status_now(hometown: Hometown) -> Json | None:
    """None when nobody answers."""
    try:
        return hometown.status()
    except httpx.HTTPError:
        return None


def is_late(status: Json, before: datetime) -> bool:
    """Whether all orders of before that time would be late."""
    watermark = status["watermark"]
    return watermark is not None and datetime.fromisoformat(watermark) >= before
