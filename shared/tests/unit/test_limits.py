"""Rate limits: a caller above the limit gets a Retry-After, and other callers are served."""

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


def test_a_refused_request_gets_a_retry_after() -> None:
    rates = Rates(0.1)
    rates.demand("one")

    with pytest.raises(HttpProblem) as refused:
        rates.demand("one")

    assert (refused.value.status, refused.value.code) == (429, "too-many-requests")
    assert 8 <= int(refused.value.headers["Retry-After"]) <= 10


def test_one_caller_does_not_use_the_rate_of_another() -> None:
    rates = Rates(1)
    admitted(rates, "one", 100)

    rates.demand("another")


def test_a_bucket_fills_again() -> None:
    rates = Rates(1_000_000)

    assert admitted(rates, "one", 10_000) == 10_000


def test_the_number_of_buckets_is_limited() -> None:
    rates = Rates(1)
    for number in range(CALLERS_MAX + 10):
        rates.demand(str(number))

    assert len(rates._buckets) == CALLERS_MAX
