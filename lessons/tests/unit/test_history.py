"""The plain loop that the programs of *question* are compared with."""

import json
from contextlib import ExitStack
from datetime import timedelta

import pytest

from fetching.errors import Failure
from lessons.experiment import Experiment
from lessons.lab import Lab
from lessons.lesson import Lesson
from lessons.question.history import (
    HOURS,
    LATE_SINCE,
    ORDERS_PER_MOVE,
    Purchase,
    count_hours,
    make_history,
    to_hour,
)
from test_support.analytics.histories import HOUR, START, at

ORDERS = 2_000


def test_the_home_at_the_time_of_the_order_counts() -> None:
    homes = {"Jack": [(START, "BJ"), (at(30), "SH")], "Lily": [(START, "SH")]}
    purchases = [
        Purchase("1", "Jack", "iphone", 3, at(29)),
        Purchase("2", "Jack", "iphone", 1, at(30)),
        Purchase("3", "Jack", "ipad", 2, at(30)),
        Purchase("4", "Lily", "ipad", 1, at(59)),
        Purchase("5", "Lily", "ipad", 1, at(60)),
    ]

    assert count_hours(purchases, homes) == {
        "2016-11-11T00:00:00": (2, 3, 6, 3 * 538888 + 3 * 488888),
        "2016-11-11T01:00:00": (1, 1, 1, 488888),
    }


def test_late_moves_change_open_hours_only() -> None:
    history = make_history(ORDERS)

    changed = {hour for hour, totals in history.before.items() if history.after[hour] != totals}

    assert changed == {to_hour(LATE_SINCE), to_hour(LATE_SINCE + timedelta(hours=1))}
    assert list(history.closed) == [to_hour(HOUR + timedelta(hours=n)) for n in range(HOURS - 3)]


def test_a_history_is_the_same_each_time() -> None:
    first, second = make_history(ORDERS), make_history(ORDERS)

    assert [event.value for event in first.orders] == [event.value for event in second.orders]
    assert first.after == second.after
    assert sum(event.type == "user-moved" for event in first.facts) == ORDERS // ORDERS_PER_MOVE


@pytest.mark.parametrize("orders", [400, 7_000, 80_000])
def test_no_user_has_two_addresses_from_the_same_time(orders: int) -> None:
    history = make_history(orders)
    events = [*history.facts, *history.late]
    facts = [json.loads(event.value) for event in events if event.topic == "users.v1"]
    versions = [(fact["user_id"], fact["effective_at"]) for fact in facts]

    assert len(set(versions)) == len(versions)


@pytest.mark.parametrize("name", ["orders", "at_a_time"])
def test_no_orders_and_no_programs_are_refused_before_anything_is_started(name: str) -> None:
    with ExitStack() as stack, pytest.raises(Failure, match=f"{name}=0: at least one"):
        Experiment(Lesson("question")).run(Lab("", stack), {name: 0})
