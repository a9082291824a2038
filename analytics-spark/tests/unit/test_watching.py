"""The job checks its generation, and gives a sign of life, as soon as the query runs; a stop waits
for one batch."""

from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest

from analytics_spark.job import job

QUERY: Any = SimpleNamespace(isActive=True)
WRITER: Any = SimpleNamespace(renew_if_lost=lambda: None)
BEGINNING: Any = SimpleNamespace(observe=lambda _: None)
POLLS = 5
LOOKS_MAX = 100


class Stop:
    """Is set after some polls, without waiting for them."""

    def __init__(self) -> None:
        self.polls = 0

    def wait(self, _: float) -> bool:
        self.polls += 1
        return self.polls > POLLS


def test_a_query_in_its_first_batch_gives_a_sign_of_life_at_once_and_then_now_and_then() -> None:
    checks: list[int] = []
    stop: Any = Stop()

    job.watch(QUERY, WRITER, stop, BEGINNING, lambda: checks.append(stop.polls))

    assert checks == [1], "the next one is due seconds later"


class Busy:
    """A query with a backlog: it is never between two batches when it is looked at."""

    def __init__(self, *ends: str) -> None:
        """When the last batch ended, at each look; it stays at the last one for some looks."""
        self._ends = chain(ends, repeat(ends[-1], LOOKS_MAX))
        self.status = {"isTriggerActive": True}
        self.seen = ""
        self.is_stopped = False

    @property
    def lastProgress(self) -> SimpleNamespace:
        self.seen = next(self._ends)
        return SimpleNamespace(timestamp=self.seen)

    def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "POLL_SECONDS", 0)


def test_a_stop_waits_for_the_batch_that_runs_and_not_for_the_backlog() -> None:
    query: Any = Busy("12:00", "12:00", "12:00", "12:01", "12:02")

    with job.stop_at_end(query):
        pass

    assert query.is_stopped
    assert query.seen == "12:01"


def test_a_stop_interrupts_a_batch_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "STOP_WAIT_SECONDS", 0)
    query: Any = Busy("12:00")

    with job.stop_at_end(query):
        pass

    assert query.is_stopped
