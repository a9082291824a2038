"""When the job says that it is ready, and when it no longer does."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark.job import readiness
from analytics_spark.job.readiness import PROGRESS_SECONDS_MAX, Readiness
from analytics_spark.job.writer import LastingWriter

WAITING = "Waiting for next trigger"
IDLE_PROGRESS_SECONDS = 10
"""Spark's noDataProgressEventInterval."""


@dataclass
class Job:
    """A clock, and a query of which a test says what it says."""

    readiness: Readiness = field(init=False)
    now: float = 1_000.0
    lastProgress: SimpleNamespace | None = None
    status: dict[str, str] = field(default_factory=lambda: {"message": "Initializing sources"})

    def monotonic(self) -> float:
        return self.now

    def says(self, message: str, *, progress: str | None = None) -> None:
        self.status["message"] = message
        self.lastProgress = SimpleNamespace(timestamp=progress) if progress else None
        self.readiness.observe(cast(StreamingQuery, self))


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Job:
    job = Job()
    monkeypatch.setattr(readiness, "time", job)
    job.readiness = Readiness(pause_seconds_max=0.5)
    return job


async def test_a_query_is_ready_after_its_first_batch_and_not_before(job: Job) -> None:
    assert await job.readiness.check() == "Spark is starting"

    job.now += 2 * PROGRESS_SECONDS_MAX
    job.says("Processing new data")
    assert await job.readiness.check() == "Processing new data"

    job.says("Processing new data", progress="first")
    assert await job.readiness.check() is None


async def test_a_query_that_begins_late_with_nothing_to_read_is_ready(job: Job) -> None:
    job.now += 2 * PROGRESS_SECONDS_MAX
    job.says(WAITING)
    assert await job.readiness.check() is None


async def test_a_query_at_rest_stays_ready(job: Job) -> None:
    for number in range(20):
        job.says(WAITING, progress=f"idle {number}")
        job.now += IDLE_PROGRESS_SECONDS
        assert await job.readiness.check() is None


async def test_a_stuck_batch_is_reported_until_it_makes_progress(job: Job) -> None:
    job.says(WAITING, progress="first")
    job.now += PROGRESS_SECONDS_MAX
    job.says("Processing new data", progress="first")
    assert await job.readiness.check() is None

    job.now += 5
    job.says("Processing new data", progress="first")
    assert await job.readiness.check() == "no progress for 65 s: Processing new data"

    job.says(WAITING, progress="second")
    assert await job.readiness.check() is None


async def test_a_query_that_is_no_longer_observed_is_not_ready(job: Job) -> None:
    """The call into Spark hangs itself."""
    job.says(WAITING, progress="first")
    job.now += PROGRESS_SECONDS_MAX + 1
    assert await job.readiness.check() == f"no progress for 61 s: {WAITING}"


async def test_a_query_without_its_connection_is_not_ready(job: Job) -> None:
    writer = SimpleNamespace(is_connected=True)
    job.readiness.set_writer(cast(LastingWriter, writer))
    job.says(WAITING, progress="first")
    assert await job.readiness.check() is None

    writer.is_connected = False
    assert await job.readiness.check() == "the connection to the database is lost"


async def test_an_intended_pause_is_waited_for(job: Job) -> None:
    job.readiness = Readiness(pause_seconds_max=300)
    job.says(WAITING, progress="first")
    job.now += 300 + PROGRESS_SECONDS_MAX
    assert await job.readiness.check() is None


def test_a_query_works_before_its_first_batch_is_done_and_no_longer_when_it_is_stuck(
    job: Job,
) -> None:
    """After a long outage the first batch is a long one: the job has not stopped."""
    job.says("Processing new data")
    job.now += 10 * PROGRESS_SECONDS_MAX
    assert job.readiness.is_working

    writer = SimpleNamespace(is_connected=False)
    job.readiness.set_writer(cast(LastingWriter, writer))
    assert not job.readiness.is_working
    writer.is_connected = True

    job.says("Processing new data", progress="first")
    job.now += 2 * PROGRESS_SECONDS_MAX
    assert not job.readiness.is_working
