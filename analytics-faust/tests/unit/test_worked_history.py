"""The history on the page is played by the program's own joins, and pinned beside Spark's."""

from collections.abc import Sequence

import pytest

from analytics_faust.buyers import Totals
from analytics_faust.worked_history import (
    MOVE_TOLD_AT_ONCE,
    MOVE_TOLD_LATE,
    Buys,
    Fact,
    Lives,
    by_arrival,
    by_event_time,
)
from test_support.analytics.histories import HOUR, Event, confirmed, listed, moved, registered
from test_support.analytics.small_job import SmallJob

WITH_THE_IPAD = Totals(local_buyers=1, purchases=2, quantity=2, cents=5_388_88 + 4_888_88)
WITH_TWO_IPHONES = Totals(local_buyers=1, purchases=2, quantity=2, cents=2 * 5_388_88)


def test_v6_told_at_once_both_are_right() -> None:
    assert by_arrival(MOVE_TOLD_AT_ONCE) == by_event_time(MOVE_TOLD_AT_ONCE) == WITH_THE_IPAD


def test_v7_told_late_only_event_time_is() -> None:
    assert by_arrival(MOVE_TOLD_LATE) == WITH_TWO_IPHONES
    assert by_event_time(MOVE_TOLD_LATE) == WITH_THE_IPAD


@pytest.mark.parametrize("facts", [MOVE_TOLD_AT_ONCE, MOVE_TOLD_LATE])
def test_spark_says_what_the_page_says_of_it(facts: Sequence[Fact]) -> None:
    job = SmallJob().read(listed("iphone"), listed("ipad"))
    for number, fact in enumerate(facts):
        job.read(event_of(fact, number))

    buyers, purchases, quantity, cents = job.hour(HOUR)
    assert by_event_time(facts) == Totals(
        local_buyers=buyers, purchases=purchases, quantity=quantity, cents=cents
    )


def event_of(fact: Fact, number: int) -> Event:
    match fact:
        case Lives() if number == 0:
            return registered("Jack", fact.address, since=fact.since)
        case Lives():
            return moved("Jack", fact.address, since=fact.since)
        case Buys():
            return confirmed(f"order {number}", "Jack", (fact.item, 1), ordered_at=fact.at)
