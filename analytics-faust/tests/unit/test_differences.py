"""Differing hours are found by their totals, with the reasons that fit."""

from datetime import UTC, datetime, timedelta

import pytest

from analytics_faust.buyers import Totals
from analytics_faust.differences import EXPLANATIONS, Reason, find_differences

HOUR = datetime(2016, 11, 11, tzinfo=UTC)
FOUR = Totals(local_buyers=4, purchases=4, quantity=12, cents=44_506_56)
FIVE = Totals(local_buyers=4, purchases=5, quantity=13, cents=49_895_44)
OTHER_FOUR = Totals(local_buyers=4, purchases=4, quantity=12, cents=44_006_56)


def test_equal_hours_are_no_difference() -> None:
    assert find_differences({HOUR: FOUR}, {HOUR: FOUR}) == []


def test_an_hour_that_one_side_does_not_list_has_zeros_there() -> None:
    later = HOUR + timedelta(hours=1)

    [first, second] = find_differences({HOUR: FOUR}, {later: FIVE})

    assert (first.hour, first.here, first.spark.purchases) == (HOUR, FOUR, 0)
    assert (second.hour, second.here.purchases, second.spark) == (later, 0, FIVE)


@pytest.mark.parametrize(
    ("here", "spark", "possible", "impossible"),
    [
        (FOUR, FIVE, Reason.ORDER_BEFORE_USER, Reason.LATE_ORDER),
        (FIVE, FOUR, Reason.LATE_ORDER, Reason.ORDER_BEFORE_USER),
        (FOUR, OTHER_FOUR, Reason.MOVE, Reason.LATE_ORDER),
    ],
)
def test_reasons_fit_the_direction(
    here: Totals, spark: Totals, possible: Reason, impossible: Reason
) -> None:
    [found] = find_differences({HOUR: here}, {HOUR: spark})

    assert possible in found.reasons
    assert impossible not in found.reasons


def test_every_reason_is_explained() -> None:
    assert EXPLANATIONS.keys() == set(Reason)
