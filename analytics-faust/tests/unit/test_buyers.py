"""Counting: the same numbers, however often and in whatever order the records arrive."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_faust.buyers import (
    NOTHING,
    BuyerLines,
    Hours,
    Totals,
    add_purchase,
    get_totals,
    hour_from_key,
    to_key,
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


def count_totals(*purchases: Purchase) -> Totals:
    """Count as the program does: add each purchase to its buyer's lines and to the hour."""
    hours, buyers = Hours(), dict[str, BuyerLines]()
    for each in purchases:
        before = buyers.get(to_key(each), {})
        buyers[to_key(each)] = add_purchase(before, each)
        hours.change(each.hour, before, buyers[to_key(each)])
    again = Hours()
    again.rebuild(buyers.items())
    assert again.get(HOUR) == hours.get(HOUR)
    return hours.get(HOUR)


def test_a_buyer_of_two_lines_is_one_buyer() -> None:
    assert count_totals(purchase("a:0"), purchase("a:1")) == Totals(
        local_buyers=1, purchases=2, quantity=6, cents=600
    )


def test_buyers_are_counted_once_each() -> None:
    other = replace(purchase("b:0"), user_id=UUID(int=2))

    assert count_totals(purchase(), other).local_buyers == 2


def test_cancelling_takes_out_exactly_that_line() -> None:
    gone = purchase("a:0", version=3, quantity=0)

    assert count_totals(purchase("a:0"), purchase("b:0"), gone) == count_totals(purchase("b:0"))
    assert count_totals(purchase("a:0"), gone) == NOTHING


def test_a_late_repeat_of_what_was_cancelled_does_not_count() -> None:
    gone = purchase(version=3, quantity=0)

    assert count_totals(purchase(), gone, purchase()) == NOTHING
    assert count_totals(gone, purchase()) == NOTHING


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

    assert count_totals(*shuffled) == count_totals(*made, *gone)


def test_without_versions_a_repeat_would_count_twice() -> None:
    """The negative control: a plain sum counts a record twice that is delivered twice."""
    quantities = [each.quantity for each in (purchase(), purchase())]

    assert sum(quantities) != count_totals(purchase(), purchase()).quantity


def test_the_same_again_is_the_same_value() -> None:
    once = add_purchase({}, purchase())

    assert add_purchase(once, purchase()) == once
    assert get_totals(once).purchases == 1


def test_values_are_read_back_from_json_as_lists() -> None:
    stored: BuyerLines = {"a:0": [2, 3, 300]}  # type: ignore[dict-item]

    assert get_totals(stored) == Totals(local_buyers=1, purchases=1, quantity=3, cents=300)
    assert add_purchase(stored, purchase()) == stored


def test_a_key_has_its_hour() -> None:
    assert hour_from_key(to_key(purchase())) == HOUR


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
