"""A plan follows from its seed, and none of its orders can be late by accident."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from verification.load.actions import NAMES, CancelOrder, ListItem, PlaceOrder, Repeat
from verification.load.campaign import parser
from verification.load.plan import (
    BURST_MAX,
    BURST_SECONDS_MAX,
    Plan,
    Scale,
    create_plan,
    place_burst,
)
from verification.load.window import HOUR, NoWindow, Window, find_window

LATENESS = timedelta(hours=2)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEWEST = datetime(2016, 12, 24, 18, 20, tzinfo=UTC)
WINDOW = Window(gap=datetime(2016, 12, 24, 19, tzinfo=UTC), lateness=LATENESS)
SCALE = Scale(seed=7, rate=100, seconds=30, users=50, items=20, late=10)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return create_plan(SCALE, WINDOW)


def orders(plan: Plan) -> list[PlaceOrder]:
    return [each.action for each in plan.actions if isinstance(each.action, PlaceOrder)]


def test_equal_seeds_make_equal_plans(plan: Plan) -> None:
    assert create_plan(SCALE, WINDOW) == plan


def test_another_seed_makes_another_plan(plan: Plan) -> None:
    other = Scale(seed=8, rate=100, seconds=30, users=50, items=20, late=10)

    assert create_plan(other, WINDOW) != plan


def test_actions_are_due_at_the_rate_one_after_the_other(plan: Plan) -> None:
    due = [each.due_seconds for each in plan.actions]

    assert len(due) == 100 * 30 + 50 + 20
    assert due == [number / 100 for number in range(len(due))]


def test_a_burst_is_five_times_the_rate_in_the_middle_and_ends() -> None:
    scale = replace(SCALE, burst=5)
    burst, due = (
        place_burst(scale),
        [each.due_seconds for each in create_plan(scale, WINDOW).actions],
    )

    assert burst is not None
    assert (burst.begins, burst.ends) == ((70 + 1_500) / 100, (70 + 1_500 + 600) / 100)
    inside = [seconds for seconds in due if burst.begins <= seconds < burst.ends]
    assert len(inside) == 5 * 6 * 100
    assert len(due) == 70 + 100 * 30 + 4 * 6 * 100
    assert due == sorted(due)
    assert len({round(later - earlier, 6) for earlier, later in pairwise(inside)}) == 1
    assert max(later - earlier for earlier, later in pairwise(due)) <= 0.01 + 1e-9


def test_a_burst_has_a_bound_however_long_the_load_is() -> None:
    burst = place_burst(replace(SCALE, seconds=3_600, burst=5))

    assert burst is not None
    assert burst.ends - burst.begins == BURST_SECONDS_MAX


def test_no_order_of_a_burst_can_be_late() -> None:
    times = [order.ordered_at for order in orders(create_plan(replace(SCALE, burst=5), WINDOW))]

    assert max(times) - min(times) < LATENESS


@pytest.mark.parametrize("times", ["0", str(BURST_MAX + 1)])
def test_a_burst_that_means_nothing_is_refused(
    times: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--burst", times])

    assert "--burst: is " in capsys.readouterr().err


def test_every_kind_of_action_happens(plan: Plan) -> None:
    assert {type(each.action) for each in plan.actions} == set(NAMES)


def test_what_an_action_is_about_comes_before_it(plan: Plan) -> None:
    placed = -1
    for each in plan.actions:
        match each.action:
            case PlaceOrder(order=order):
                placed = order
            case CancelOrder(order=order):
                assert order <= placed
            case Repeat(of=number):
                assert number < each.number
                assert not isinstance(plan.actions[number].action, Repeat)


def test_some_users_are_much_busier_than_others(plan: Plan) -> None:
    busy = Counter(order.user for order in orders(plan))

    assert busy[0] > 5 * busy[30]


def test_orders_are_spread_over_hours_and_some_are_out_of_order(plan: Plan) -> None:
    times = [order.ordered_at for order in orders(plan)]

    assert len({time.replace(minute=0, second=0, microsecond=0) for time in times}) == 3
    assert times != sorted(times)


def test_some_orders_lie_on_either_side_of_a_full_hour(plan: Plan) -> None:
    after = {order.ordered_at - WINDOW.gap for order in orders(plan)}

    assert 2 * HOUR in after
    assert 2 * HOUR - timedelta(milliseconds=1) in after


def test_no_order_can_be_late_whatever_comes_first(plan: Plan) -> None:
    times = [order.ordered_at for order in orders(plan)]

    assert max(times) - min(times) < LATENESS


def test_late_orders_are_late_once_the_others_are_counted(plan: Plan) -> None:
    newest = max(order.ordered_at for order in orders(plan))
    late = [each.action for each in plan.late if isinstance(each.action, PlaceOrder)]

    assert len(late) == 10
    assert all(order.ordered_at <= newest - LATENESS for order in late)
    assert all(order.ordered_at >= WINDOW.gap for order in late)


def test_the_first_window_is_on_the_day_after_the_demonstration() -> None:
    window = find_window(None, LATENESS, NOW)

    assert window.gap == datetime(2016, 11, 12, tzinfo=UTC)


def test_a_window_begins_with_an_hour_that_nobody_has_used() -> None:
    assert find_window(NEWEST, LATENESS, NOW) == WINDOW
    assert WINDOW.hours[0] > NEWEST
    assert WINDOW.hours[-1] <= WINDOW.ends_at


def test_after_an_order_of_today_there_is_no_window() -> None:
    with pytest.raises(NoWindow, match="make clean"):
        find_window(NOW, LATENESS, NOW)


def test_a_lateness_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(NoWindow, match="too short"):
        find_window(None, timedelta(minutes=10), NOW)


def test_what_may_be_left_out_is_needed_by_nobody(plan: Plan) -> None:
    listed = {each.action.item for each in plan.nudges if isinstance(each.action, ListItem)}
    late = [each.action for each in plan.late if isinstance(each.action, PlaceOrder)]

    assert listed
    assert not listed & {item for order in [*orders(plan), *late] for item, _ in order.lines}
