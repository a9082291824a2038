"""Progress in one line: replaced on a terminal, now and then a new one in a log."""

import time

from local_stack import progress
from shared.runtime.progress import tell_in_place

LOG_SECONDS = 10.0


class Line:
    """What is under way, as often as somebody can read it."""

    def __init__(self) -> None:
        self._told_at = time.monotonic()

    def tell(self, text: str) -> None:
        if progress.is_terminal():
            tell_in_place(text)
        elif time.monotonic() >= self._told_at + LOG_SECONDS:
            self._told_at = time.monotonic()
            progress.tell(text)
