"""Wait for something to become true: a deadline, and the last thing seen when it is missed."""

import time
from collections.abc import Callable
from typing import TypeVar

import httpx

from test_support.waits import HANGS_AFTER_SECONDS

T = TypeVar("T")

POLL_SECONDS = 0.1
"""Of rest between two looks, at least. It is as long as a look took, so that one that starts a
program leaves half of the time to what is waited for."""


class NotInTime(AssertionError):
    """What was waited for, and what was seen last."""


def eventually(
    look: Callable[[], T],
    is_right: Callable[[T], bool],
    *,
    what: str,
    seconds_max: float = HANGS_AFTER_SECONDS,
) -> T:
    """The first result of `look` that is right. A failure to connect counts as wrong.

    Raises:
        NotInTime: nothing was right within `seconds_max`.
    """
    deadline = time.monotonic() + seconds_max
    seen: object = "nothing"
    while True:
        began_at = time.monotonic()
        try:
            found = look()
            if is_right(found):
                return found
            seen = found
        except httpx.HTTPError as error:
            seen = error
        now = time.monotonic()
        if now >= deadline:
            raise NotInTime(f"{what}: not within {seconds_max:.0f} s; last seen: {seen!r}")
        time.sleep(max(POLL_SECONDS, now - began_at))
