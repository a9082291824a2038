"""Whether the query makes progress and can write, for the job's health check."""

import time

from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark.job.writer import LastingWriter

PROGRESS_SECONDS_MAX = 60
"""How long a trigger may take. Without anything to read, Spark reports progress every 10 seconds
(its `noDataProgressEventInterval`), so that an idle query does not look like a stuck one."""


class Readiness:
    """Why the query is not ready: it has not begun yet, it no longer makes progress, or it has
    lost its connection to the database."""

    def __init__(self, pause_seconds_max: float) -> None:
        """`pause_seconds_max` is the longest time between two batches that is intended."""
        self._silence_seconds_max = PROGRESS_SECONDS_MAX + pause_seconds_max
        self._message = "Spark is starting"
        self._begun = False
        self._progress: str | None = None
        self._progress_at = time.monotonic()
        self._writer: LastingWriter | None = None

    def set_writer(self, writer: LastingWriter) -> None:
        """The writer of the query."""
        self._writer = writer

    def observe(self, running: StreamingQuery) -> None:
        """Record the query's status. It has begun after its first batch, or when there was
        nothing to read yet."""
        last = running.lastProgress
        progress = None if last is None else last.timestamp
        self._message = str(running.status["message"])
        if progress != self._progress or not self._begun:
            self._progress, self._progress_at = progress, time.monotonic()
        self._begun |= progress is not None or self._message.startswith("Waiting for")

    @property
    def is_working(self) -> bool:
        """Whether nothing is known to be wrong. The first batch may take as long as it needs."""
        return self._find_failure() is None

    async def check(self) -> str | None:
        return self.find_obstacle()

    def find_obstacle(self) -> str | None:
        """None when ready."""
        return self._find_failure() or (None if self._begun else self._message)

    def _find_failure(self) -> str | None:
        """The silence is measured here, to notice that `observe` is not called."""
        silence_seconds = time.monotonic() - self._progress_at
        if self._begun and silence_seconds > self._silence_seconds_max:
            return f"no progress for {silence_seconds:.0f} s: {self._message}"
        if self._writer is not None and not self._writer.is_connected:
            return "the connection to the database is lost"
        return None
