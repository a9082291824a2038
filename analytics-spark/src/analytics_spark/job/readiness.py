"""Whether the query makes progress, for the job's health check."""

import time

from pyspark.sql.streaming.query import StreamingQuery

PROGRESS_SECONDS_MAX = 60
"""How long a trigger may take. Without anything to read, Spark reports progress every 10 seconds
(its `noDataProgressEventInterval`), so that an idle query does not look like a stuck one."""


class Readiness:
    """Why the query is not ready: it has not begun yet, or it no longer makes progress."""

    def __init__(self, trigger_milliseconds: int) -> None:
        self._silence_seconds_max = PROGRESS_SECONDS_MAX + trigger_milliseconds / 1000
        self._message = "Spark is starting"
        self._begun = False
        self._progress: str | None = None
        self._progress_at = time.monotonic()

    def observe(self, running: StreamingQuery) -> None:
        """Record the query's status. It has begun after its first batch, or when there was
        nothing to read yet."""
        last = running.lastProgress
        progress = None if last is None else last.timestamp
        self._message = str(running.status["message"])
        if progress != self._progress or not self._begun:
            self._progress, self._progress_at = progress, time.monotonic()
        self._begun |= progress is not None or self._message.startswith("Waiting for")

    async def check(self) -> str | None:
        """None when ready. The silence is measured here, to notice that `observe` is not called."""
        silence_seconds = time.monotonic() - self._progress_at
        if self._begun and silence_seconds > self._silence_seconds_max:
            return f"no progress for {silence_seconds:.0f} s: {self._message}"
        return None if self._begun else self._message
