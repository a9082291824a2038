"""A terminal that is closed, and a request to end: what is stopped meanwhile starts again."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

LEFT_ON = (signal.SIGHUP, signal.SIGTERM)
EXITED_BY_SIGNAL = 128
"""The exit status of a program that a signal ended is higher by that, as in a shell."""


@contextmanager
def left_on_signals() -> Iterator[None]:
    """These signals raise SystemExit inside; one that is ignored, as after `nohup`, remains so.

    Only the first one does: a closed terminal sends several, which must not interrupt what is done
    at the end. Threads get no signals: in one, nothing changes.
    """
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in LEFT_ON}

    def leave(number: int, frame: FrameType | None) -> None:
        for each in LEFT_ON:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(EXITED_BY_SIGNAL + number)

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
