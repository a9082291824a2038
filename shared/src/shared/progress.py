"""How far long work has come: a line of a terminal that the next one replaces."""

import sys
import time

CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Counts events. Where nobody watches, nothing is written."""

    def __init__(self) -> None:
        self.events = 0
        self._began_at = time.monotonic()

    def add(self, events: int) -> None:
        self.events += events
        if sys.stdout.isatty():
            sys.stdout.write(f"{CLEAR_LINE}{self.events:,} events, {self.per_second:,.0f}/s")
            sys.stdout.flush()

    def end(self) -> None:
        """Leave the line to others."""
        if sys.stdout.isatty():
            sys.stdout.write(CLEAR_LINE)

    @property
    def per_second(self) -> float:
        """Since the beginning."""
        return self.events / max(time.monotonic() - self._began_at, 0.001)
