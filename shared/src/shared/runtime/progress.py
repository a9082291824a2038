"""How far long work has come: a line of a terminal that the next one replaces."""

import sys
import time

CLEAR_LINE = "\r\x1b[K"


def tell_in_place(text: str) -> None:
    """A line that the next one replaces; only a terminal gets any."""
    if sys.stdout.isatty():
        sys.stdout.write(f"{CLEAR_LINE}{text}")
        sys.stdout.flush()


class ProgressLine:
    """Counts events."""

    def __init__(self) -> None:
        self.events = 0
        self._began_at = time.monotonic()

    def add(self, events: int) -> None:
        self.events += events
        tell_in_place(f"{self.events:,} events, {self.per_second:,.0f}/s")

    def end(self) -> None:
        """Leave the line to others."""
        tell_in_place("")

    @property
    def per_second(self) -> float:
        """Since the beginning."""
        return self.events / max(time.monotonic() - self._began_at, 0.001)
