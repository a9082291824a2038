"""Waits until nothing is under way any more, and looks whether all is as it must be."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import httpx

from clients import Hometown, Json
from traffic.compare import Observation, differences, lag_of, observe
from traffic.driver import Run
from traffic.window import Window

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


def wait_until_settled(
    hometown: Hometown, run: Run, window: Window, before: Json, told: Callable[[str], None]
) -> Settled:
    """As soon as all is right and stays so, or as soon as nothing changes any more.

    Raises:
        NotSettled: neither within SETTLE_SECONDS_MAX.
    """
    began_at = changed_at = time.monotonic()
    right_since: float | None = None
    last: Observation | None = None
    while time.monotonic() < began_at + SETTLE_SECONDS_MAX:
        try:
            seen = observe(hometown, run, window)
        except httpx.HTTPError as error:
            told(f"waiting: {error!r}")
            right_since, changed_at = None, time.monotonic()
            time.sleep(LOOK_SECONDS)
            continue
        now = time.monotonic()
        found = list(dict.fromkeys(differences(run, window, before, seen)))
        if seen != last:
            changed_at = now
        last = seen
        is_right = not found and seen.lag == 0
        right_since = (right_since or now) if is_right else None
        if right_since is not None and now >= right_since + SURE_SECONDS:
            return Settled(observation=seen, differences=[], quiet_at=right_since)
        if not is_right and now >= changed_at + UNCHANGED_SECONDS_MAX:
            return Settled(observation=seen, differences=found, quiet_at=changed_at)
        told(f"waiting: {seen.pending} orders pending, lag {seen.lag}, {len(found)} differences")
        time.sleep(LOOK_SECONDS)
    raise NotSettled(f"not at rest within {SETTLE_SECONDS_MAX} s: {last and last.status}")


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
