"""Progress in one line: replaced on a terminal, repeated every few seconds in a log."""

import time

from local_stack import progress
from shared.runtime.progress import tell_in_place

LOG_SECONDS = 10.0


class StatusLine:
    """Shows progress, no more often than a reader can follow."""

    def __init__(self) -> None:
        self._shown_at = time.monotonic()

    def show(self, text: str) -> None:
        if progress.is_terminal():
            tell_in_place(text)
        elif time.monotonic() >= self._shown_at + LOG_SECONDS:
            self._shown_at = time.monotonic()
            progress.tell(text)
