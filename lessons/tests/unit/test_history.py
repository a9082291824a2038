"""The plain loop that the programs of *question* are compared with."""

from datetime import timedelta

from lessons.question.history import (
    HOURS,
    LATE_SINCE,
    ORDERS_OF_A_MOVE,
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

    changed = {hour for hour, totals in history.answer.items() if history.corrected[hour] != totals}

    assert changed == {to_hour(LATE_SINCE), to_hour(LATE_SINCE + timedelta(hours=1))}
    assert list(history.closed) == [to_hour(HOUR + timedelta(hours=n)) for n in range(HOURS - 3)]


def test_a_history_is_the_same_each_time() -> None:
    first, second = make_history(ORDERS), make_history(ORDERS)

    assert [event.value for event in first.orders] == [event.value for event in second.orders]
    assert first.corrected == second.corrected
    assert sum(event.type == "user-moved" for event in first.facts) == ORDERS // ORDERS_OF_A_MOVE
