"""The job checks its generation, and gives its first sign of life, as soon as the query runs."""

from types import SimpleNamespace
from typing import Any

from analytics_spark.job import job

QUERY: Any = SimpleNamespace(isActive=True)
WRITER: Any = SimpleNamespace(renew_if_lost=lambda: None)
BEGINNING: Any = SimpleNamespace(observe=lambda _: None)
POLLS = 5


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
