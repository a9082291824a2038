"""Rates: who comes too often is told when to come again, and the others are not held up."""

import pytest

from shared.web.limits import CALLERS_MAX, Rates
from shared.web.problems import HttpProblem


def admitted(rates: Rates, caller: str, times: int) -> int:
    count = 0
    for _ in range(times):
        try:
            rates.demand(caller)
            count += 1
        except HttpProblem:
            pass
    return count


def test_a_burst_of_twice_the_rate_is_admitted_and_no_more() -> None:
    rates = Rates(0.001)
    assert admitted(rates, "one", 10) == 1

    assert admitted(Rates(5), "one", 1_000) in {10, 11}


def test_who_comes_too_often_is_told_when_to_come_again() -> None:
    rates = Rates(0.1)
    rates.demand("one")

    with pytest.raises(HttpProblem) as refused:
        rates.demand("one")

    assert (refused.value.status, refused.value.code) == (429, "too-many-requests")
    assert 8 <= int(refused.value.headers["Retry-After"]) <= 10


def test_one_caller_does_not_hold_up_another() -> None:
    rates = Rates(1)
    admitted(rates, "one", 100)

    rates.demand("another")


def test_a_bucket_fills_again() -> None:
    rates = Rates(1_000_000)

    assert admitted(rates, "one", 10_000) == 10_000


def test_the_callers_that_are_known_are_bounded() -> None:
    rates = Rates(1)
    for number in range(CALLERS_MAX + 10):
        rates.demand(str(number))

    assert len(rates._buckets) == CALLERS_MAX
