"""The history on the page goes through the program's own joins, and is compared with Spark's."""

from collections.abc import Sequence

import pytest

from analytics_faust.buyers import Totals
from analytics_faust.worked_history import (
    MOVE_ANNOUNCED_AT_ONCE,
    MOVE_ANNOUNCED_LATE,
    Buys,
    Fact,
    Lives,
    count_by_arrival,
    count_by_event_time,
)
from test_support.analytics.histories import HOUR, Event, confirmed, listed, moved, registered
from test_support.analytics.small_job import SmallJob

WITH_THE_IPAD = Totals(local_buyers=1, purchases=2, quantity=2, cents=5_388_88 + 4_888_88)
WITH_TWO_IPHONES = Totals(local_buyers=1, purchases=2, quantity=2, cents=2 * 5_388_88)


def test_v6_announced_at_once_both_are_right() -> None:
    assert (
        count_by_arrival(MOVE_ANNOUNCED_AT_ONCE)
        == count_by_event_time(MOVE_ANNOUNCED_AT_ONCE)
        == WITH_THE_IPAD
    )


def test_v7_announced_late_only_event_time_is() -> None:
    assert count_by_arrival(MOVE_ANNOUNCED_LATE) == WITH_TWO_IPHONES
    assert count_by_event_time(MOVE_ANNOUNCED_LATE) == WITH_THE_IPAD


@pytest.mark.parametrize("facts", [MOVE_ANNOUNCED_AT_ONCE, MOVE_ANNOUNCED_LATE])
def test_spark_answers_as_the_page_claims(facts: Sequence[Fact]) -> None:
    job = SmallJob().read(listed("iphone"), listed("ipad"))
    for number, fact in enumerate(facts):
        job.read(to_event(fact, number))

    buyers, purchases, quantity, cents = job.hour(HOUR)
    assert count_by_event_time(facts) == Totals(
        local_buyers=buyers, purchases=purchases, quantity=quantity, cents=cents
    )


def to_event(fact: Fact, number: int) -> Event:
    match fact:
        case Lives() if number == 0:
            return registered("Jack", fact.address, since=fact.since)
        case Lives():
            return moved("Jack", fact.address, since=fact.since)
        case Buys():
            return confirmed(f"order {number}", "Jack", (fact.item, 1), ordered_at=fact.at)
