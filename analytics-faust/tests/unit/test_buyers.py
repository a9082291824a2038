"""Counting: the same numbers, however often and in whatever order the records come."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_faust.buyers import (
    NOTHING,
    Bought,
    Hours,
    Totals,
    hour_in,
    key_of,
    totals_of,
    with_purchase,
)
from analytics_faust.joins import Purchase

HOUR = datetime(2016, 11, 11, tzinfo=UTC)
JACK = UUID(int=1)


def purchase(line: str = "a:0", *, version: int = 2, quantity: int = 3) -> Purchase:
    return Purchase(
        hour=HOUR,
        user_id=JACK,
        line=line,
        version=version,
        quantity=quantity,
        cents=100 * quantity,
    )


def counted(*purchases: Purchase) -> Totals:
    """As the program does: each one into its buyer's lines, and the difference into the hour."""
    hours, buyers = Hours(), dict[str, Bought]()
    for each in purchases:
        before = buyers.get(key_of(each), {})
        buyers[key_of(each)] = with_purchase(before, each)
        hours.change(each.hour, before, buyers[key_of(each)])
    again = Hours()
    again.make_from(buyers.items())
    assert again.get(HOUR) == hours.get(HOUR)
    return hours.get(HOUR)


def test_a_buyer_of_two_lines_is_one_buyer() -> None:
    assert counted(purchase("a:0"), purchase("a:1")) == Totals(
        local_buyers=1, purchases=2, quantity=6, cents=600
    )


def test_buyers_are_counted_once_each() -> None:
    other = replace(purchase("b:0"), user_id=UUID(int=2))

    assert counted(purchase(), other).local_buyers == 2


def test_cancelling_takes_out_exactly_that_line() -> None:
    gone = purchase("a:0", version=3, quantity=0)

    assert counted(purchase("a:0"), purchase("b:0"), gone) == counted(purchase("b:0"))
    assert counted(purchase("a:0"), gone) == NOTHING


def test_a_late_repeat_of_what_was_cancelled_does_not_count() -> None:
    gone = purchase(version=3, quantity=0)

    assert counted(purchase(), gone, purchase()) == NOTHING
    assert counted(gone, purchase()) == NOTHING


LINES = st.builds(
    purchase,
    st.sampled_from(["a:0", "a:1", "b:0", "c:0"]),
    version=st.just(2),
    quantity=st.just(3),
)


@given(st.lists(LINES), st.randoms(use_true_random=False))
def test_repeats_and_cancellations_in_any_order_count_alike(
    made: list[Purchase], chance: random.Random
) -> None:
    gone = [replace(each, version=3, quantity=0, cents=0) for each in made[::2]]
    shuffled = [*made, *gone, *made, *gone]
    chance.shuffle(shuffled)

    assert counted(*shuffled) == counted(*made, *gone)


def test_without_versions_a_repeat_would_count_twice() -> None:
    """The negative control: what a plain sum makes of a record that is delivered twice."""
    quantities = [each.quantity for each in (purchase(), purchase())]

    assert sum(quantities) != counted(purchase(), purchase()).quantity


def test_the_same_again_is_the_same_value() -> None:
    once = with_purchase({}, purchase())

    assert with_purchase(once, purchase()) == once
    assert totals_of(once).purchases == 1


def test_values_are_read_back_from_json_as_lists() -> None:
    stored: Bought = {"a:0": [2, 3, 300]}  # type: ignore[dict-item]

    assert totals_of(stored) == Totals(local_buyers=1, purchases=1, quantity=3, cents=300)
    assert with_purchase(stored, purchase()) == stored


def test_a_key_says_its_hour() -> None:
    assert hour_in(key_of(purchase())) == HOUR


@pytest.mark.parametrize(
    ("since", "until", "after", "limit", "expected"),
    [
        (None, None, None, 10, [0, 1, 2]),
        (1, None, None, 10, [1, 2]),
        (None, 1, None, 10, [0]),
        (None, None, 1, 10, [2]),
        (None, None, None, 2, [0, 1]),
    ],
)
def test_hours_are_listed_in_their_order(
    since: int | None, until: int | None, after: int | None, limit: int, expected: list[int]
) -> None:
    hours = Hours()
    for number in (2, 0, 1):
        hours.change(hour_number(number), {}, {"a:0": (2, 1, 1)})
    hours.change(hour_number(5), {}, {"a:0": (3, 0, 0)})

    found = hours.list(
        since=since if since is None else hour_number(since),
        until=until if until is None else hour_number(until),
        after=after if after is None else hour_number(after),
        limit=limit,
    )

    assert [hour for hour, _ in found] == [hour_number(number) for number in expected]


def hour_number(number: int) -> datetime:
    return HOUR + timedelta(hours=number)
