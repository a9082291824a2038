"""How much a caller may ask of a process."""

import math
import time

from shared.problems import HttpProblem

CALLERS_MAX = 10_000
"""Whose rates are known at once; whoever is forgotten starts with a full bucket."""
BURST_SECONDS = 2
"""What a caller did not ask for may be asked for later, up to this much of it."""


class Rates:
    """A token bucket for each caller, in the memory of this process alone."""

    def __init__(self, per_second_max: float) -> None:
        self._rate = per_second_max
        self._burst = max(per_second_max * BURST_SECONDS, 1.0)
        self._buckets: dict[str, tuple[float, float]] = {}
        """What is left, and when that was so; whoever came last stands last."""

    def demand(self, caller: str) -> None:
        """Take one request. Raises HttpProblem for a caller who comes too often."""
        now = time.monotonic()
        left, at = self._buckets.pop(caller, (self._burst, now))
        left = min(left + (now - at) * self._rate, self._burst)
        admitted = left >= 1
        if len(self._buckets) >= CALLERS_MAX:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[caller] = (left - admitted, now)
        if not admitted:
            seconds = math.ceil((1 - left) / self._rate)
            detail = f"a caller may ask {self._rate:g} times a second"
            raise HttpProblem(429, "too-many-requests", detail, {"Retry-After": str(seconds)})
