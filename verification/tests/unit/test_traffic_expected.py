"""The totals that load is compared with, by the vectors that pin the answer: tiny ledgers."""

import dataclasses
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from test_support.system import sample
from verification.load import expected
from verification.load.compare import compare_hours
from verification.load.expected import By, Everything, Ledger, Line, Order, Purchase, Since, Totals

HOUR = sample.HOUR
SINCE = sample.SINCE
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
USERS = {row["name"]: row for row in sample.rows("users")}
ITEMS = {row["name"]: row for row in sample.rows("items")}


def at(minute: int, second: int = 0, millisecond: int = 0) -> datetime:
    return HOUR + timedelta(minutes=minute, seconds=second, milliseconds=millisecond)


def order(user: str, item: str, ordered_at: datetime, quantity: int = 1) -> Order:
    price = Decimal(ITEMS[item]["price"])
    return Order(
        order_id=f"{user} {item} {ordered_at}",
        user_id=user,
        lines=(Line(item_id=item, quantity=quantity, unit_price=price),),
        ordered_at=ordered_at,
        status="confirmed",
        was_confirmed=True,
    )


def create_since(value: str, effective_at: datetime = SINCE, version: int = 1) -> Since:
    return Since(effective_at=effective_at, version=version, value=value)


@pytest.fixture
def ledger() -> Ledger:
    """The sample, with the names as ids."""
    return Ledger(
        addresses={name: [create_since(row["address"])] for name, row in USERS.items()},
        genders={name: row["gender"] for name, row in USERS.items()},
        origins={name: [create_since(row["origin"])] for name, row in ITEMS.items()},
        types={name: row["type"] for name, row in ITEMS.items()},
        orders=[
            order(
                row["user"],
                row["item"],
                datetime.fromisoformat(row["ordered_at"]),
                int(row["quantity"]),
            )
            for row in sample.rows("orders")
        ],
        late_before=LONG_AGO,
    )


def more(ledger: Ledger, *orders: Order) -> Ledger:
    return dataclasses.replace(ledger, orders=[*ledger.orders, *orders])


def moved(ledger: Ledger, user: str, *moves: Since) -> Ledger:
    addresses = {**ledger.addresses, user: [*ledger.addresses[user], *moves]}
    return dataclasses.replace(ledger, addresses=addresses)


def of_hour(ledger: Ledger, hours: int = 0) -> list[Purchase]:
    hour = HOUR + timedelta(hours=hours)
    return [each for each in expected.find_local_purchases(ledger) if each.hour == hour]


def buyers_and_purchases(ledger: Ledger, hours: int = 0) -> tuple[int, int]:
    totals = expected.sum_totals(of_hour(ledger, hours))
    return totals.local_buyers, totals.purchases


def amounts(ledger: Ledger, by: By) -> dict[str, str]:
    return {
        value: str(totals.amount)
        for value, totals in expected.split_totals(of_hour(ledger), by).items()
    }


def test_the_sample_is_as_it_must_be(ledger: Ledger) -> None:
    """Vector V1."""
    assert expected.sum_totals(of_hour(ledger)) == Totals(
        local_buyers=4, purchases=4, quantity=12, amount=Decimal("44506.56")
    )
    by_place = {"BJ": "16166.64", "SH": "14666.64", "SZ": "8006.64", "GZ": "5666.64"}
    assert amounts(ledger, "origin") == by_place
    assert amounts(ledger, "address") == by_place
    assert amounts(ledger, "gender") == {"male": "24173.28", "female": "20333.28"}
    assert expected.sum_everything(ledger, HOUR) == Everything(
        purchases=16, quantity=55, amount=Decimal("203588.40")
    )


def test_the_last_millisecond_belongs_to_the_hour(ledger: Ledger) -> None:
    """Vector V3."""
    ledger = more(ledger, order("Jack", "iphone", at(59, 59, 999)))

    assert buyers_and_purchases(ledger) == (4, 5)


def test_the_full_hour_belongs_to_the_next_one(ledger: Ledger) -> None:
    """Vector V4."""
    ledger = more(ledger, order("Jack", "iphone", at(60)))

    assert buyers_and_purchases(ledger) == (4, 4)
    assert buyers_and_purchases(ledger, hours=1) == (1, 1)


def test_a_purchase_is_local_where_the_user_lived_then(ledger: Ledger) -> None:
    """Vectors V6 and V7: when the move was announced changes nothing."""
    ledger = more(ledger, order("Jack", "ipad", at(31)), order("Jack", "iphone", at(31)))
    ledger = moved(ledger, "Jack", create_since("SH", at(30), version=2))

    purchases = [(each.user, each.item) for each in of_hour(ledger) if each.user == "Jack"]
    assert purchases == [("Jack", "iphone"), ("Jack", "ipad")]
    assert buyers_and_purchases(ledger) == (4, 5)


def test_of_two_moves_to_one_instant_the_later_announced_one_holds(ledger: Ledger) -> None:
    ledger = more(ledger, order("Jack", "ipad", at(31)))
    ledger = moved(
        ledger, "Jack", create_since("SH", at(30), version=3), create_since("SZ", at(30), version=2)
    )

    assert buyers_and_purchases(ledger) == (4, 5)


def test_a_move_holds_from_its_very_instant_on(ledger: Ledger) -> None:
    ledger = moved(ledger, "Jack", create_since("SH", at(31), version=2))

    assert buyers_and_purchases(more(ledger, order("Jack", "ipad", at(31)))) == (4, 5)
    assert buyers_and_purchases(more(ledger, order("Jack", "ipad", at(30, 59, 999)))) == (4, 4)


def test_a_cancelled_order_is_taken_out(ledger: Ledger) -> None:
    """Vector V10."""
    first = dataclasses.replace(ledger.orders[0], status="cancelled")
    ledger = dataclasses.replace(ledger, orders=[first, *ledger.orders[1:]])

    assert (first.user_id, first.lines[0].item_id) == ("Jack", "iphone")
    assert buyers_and_purchases(ledger) == (3, 3)
    assert expected.count_counted(ledger) == 16
    assert expected.sum_reserved_credit(ledger)["Jack"] == sum(
        order.amount for order in ledger.orders[1:] if order.user_id == "Jack"
    )


def test_a_corrected_origin_moves_what_was_bought(ledger: Ledger) -> None:
    """Vector V11: the iphone has come from SH all the time."""
    corrected = {**ledger.origins, "iphone": [create_since("BJ"), create_since("SH", version=2)]}
    ledger = dataclasses.replace(ledger, origins=corrected)

    assert set(amounts(ledger, "origin")) == {"SH", "SZ", "GZ"}
    assert [each.user for each in of_hour(ledger) if each.item == "iphone"] == ["Lily"]


def test_one_buyer_with_two_purchases_is_one_buyer(ledger: Ledger) -> None:
    """Vector V12."""
    ledger = more(ledger, order("Lucy", "ipod", at(5)))

    assert buyers_and_purchases(ledger) == (4, 5)


def test_who_lives_nowhere_buys_nothing_local(ledger: Ledger) -> None:
    """Jack registered, and an item was listed, only after the order."""
    nowhere = dataclasses.replace(
        ledger,
        addresses={**ledger.addresses, "Jack": [create_since("BJ", at(30))]},
        origins={**ledger.origins, "iphone": [create_since("BJ", at(30))]},
    )

    assert buyers_and_purchases(nowhere) == (3, 3)


@pytest.mark.parametrize("status", ["pending", "rejected", "cancelled"])
def test_only_confirmed_orders_count(ledger: Ledger, status: str) -> None:
    closed = dataclasses.replace(order("Jack", "iphone", at(5)), status=status, was_confirmed=False)
    ledger = more(ledger, closed)

    assert buyers_and_purchases(ledger) == (4, 4)
    assert expected.count_counted(ledger) == 16


def test_open_and_confirmed_orders_reserve_credit(ledger: Ledger) -> None:
    before = expected.sum_reserved_credit(ledger)["Jack"]
    pending = dataclasses.replace(order("Jack", "iphone", at(5)), status="pending")
    rejected = dataclasses.replace(order("Jack", "iphone", at(6)), status="rejected")

    after = expected.sum_reserved_credit(more(ledger, pending, rejected))["Jack"]

    assert after - before == Decimal("5388.88")


def test_an_order_that_came_too_late_reserves_credit_and_is_not_counted(ledger: Ledger) -> None:
    before = expected.sum_reserved_credit(ledger)["Jack"]
    late = dataclasses.replace(more(ledger, order("Jack", "iphone", at(-1))), late_before=HOUR)

    assert buyers_and_purchases(late, hours=-1) == (0, 0)
    assert (expected.count_counted(late), expected.count_late(late)) == (16, 1)
    assert expected.sum_reserved_credit(late)["Jack"] - before == Decimal("5388.88")


def answer_to(ledger: Ledger) -> dict[tuple[datetime, By], dict[str, object]]:
    """What analytics would answer for the hour by origin."""

    def cell(totals: Totals) -> dict[str, object]:
        return {**dataclasses.asdict(totals), "amount": str(totals.amount)}

    purchases = of_hour(ledger)
    cells = [
        {"origin": value, **cell(totals)}
        for value, totals in expected.split_totals(purchases, "origin").items()
    ]
    bought = expected.sum_everything(ledger, HOUR)
    whole = {
        **cell(expected.sum_totals(purchases)),
        "all": {**dataclasses.asdict(bought), "amount": str(bought.amount)},
        "cells": cells,
    }
    return {(HOUR, "origin"): whole}


def test_equal_totals_do_not_differ(ledger: Ledger) -> None:
    assert list(compare_hours(ledger, answer_to(ledger))) == []


def test_one_changed_order_is_found(ledger: Ledger) -> None:
    """The negative control of the comparison."""
    first = ledger.orders[0]
    [line] = first.lines
    dearer = dataclasses.replace(line, unit_price=line.unit_price + Decimal("0.01"))
    changed = dataclasses.replace(first, lines=(dearer,))
    other = dataclasses.replace(ledger, orders=[changed, *ledger.orders[1:]])

    found = list(compare_hours(other, answer_to(ledger)))

    assert [difference.partition(";")[0] for difference in found] == [
        "hour 2016-11-11 00, all: 4 buyers, 4 purchases, quantity 12, amount 44506.56",
        "hour 2016-11-11 00, wherever from: Everything(purchases=16, quantity=55,"
        " amount=Decimal('203588.40'))",
        "hour 2016-11-11 00 by origin, BJ: 1 buyers, 1 purchases, quantity 3, amount 16166.64",
    ]
