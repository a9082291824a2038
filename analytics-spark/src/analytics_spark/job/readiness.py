"""Whether the query gets on, for those who ask the job for its health."""

import time

from pyspark.sql.streaming.query import StreamingQuery

PROGRESS_SECONDS_MAX = 60
"""How long a trigger may take. Without anything to read, Spark reports progress every 10 seconds
(its `noDataProgressEventInterval`), so that a query at rest does not look like one that hangs."""


class Readiness:
    """Why the query is not ready: it has not begun yet, or it does not get on any more."""

    def __init__(self, trigger_milliseconds: int) -> None:
        self._silence_seconds_max = PROGRESS_SECONDS_MAX + trigger_milliseconds / 1000
        self._message = "Spark is starting"
        self._begun = False
        self._progress: str | None = None
        self._progress_at = time.monotonic()

    def look_at(self, running: StreamingQuery) -> None:
        """Note what the query says. It has begun after its first batch, and when there was nothing
        to read yet."""
        last = running.lastProgress
        progress = None if last is None else last.timestamp
        self._message = str(running.status["message"])
        if progress != self._progress or not self._begun:
            self._progress, self._progress_at = progress, time.monotonic()
        self._begun |= progress is not None or self._message.startswith("Waiting for")

    async def check(self) -> str | None:
        """The silence is measured here, so that it shows even when nobody looks at the query."""
        silence_seconds = time.monotonic() - self._progress_at
        if self._begun and silence_seconds > self._silence_seconds_max:
            return f"no progress for {silence_seconds:.0f} s: {self._message}"
        return None if self._begun else self._message
