"""Money: credit is reserved, refused and released to the cent, whatever is repeated or killed."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import pytest

from test_support.first_and_long import first_and_long
from test_support.system.clients import Hometown, Json
from test_support.system.eventually import eventually
from test_support.system.stack import Stack

LONG = pytest.mark.verify(part="end-to-end")
LIMIT = "10000.00"
UNKNOWN_USER = "00000000-0000-7000-8000-000000000000"
DEAR, CHEAP = "5388.88", "4888.88"

PUBLISH_ALL_AGAIN = """
    UPDATE relay
    SET published_xmax = '0', published_xip = '{}', target = NULL, floor_position = 0
"""


@dataclass(frozen=True, slots=True)
class Shop:
    """A user with a credit limit of 10000.00, and two items."""

    hometown: Hometown
    hour: datetime
    user: str
    dear: str
    cheap: str

    def order(self, item: str) -> str:
        return str(self.hometown.place_order(self.user, [(item, 1)], self.hour)["order_id"])

    def decided(self, item: str) -> Json:
        return self.hometown.wait_for_decision(self.order(item))

    def available(self) -> str:
        return str(self.hometown.get_user(self.user)["available_credit"])

    def wait_for_available(self, amount: str) -> None:
        eventually(self.available, lambda seen: seen == amount, what=f"{amount} available")


@pytest.fixture
def shop(hometown: Hometown, hour: datetime) -> Shop:
    user = hometown.register_user(name="Jack", address="BJ", gender="male", credit_limit=LIMIT)
    items = [
        hometown.list_item(name="thing", type="phone", origin="BJ", price=price)["item_id"]
        for price in (DEAR, CHEAP)
    ]
    return Shop(hometown, hour, user["user_id"], *items)


def leave_alone(stack: Stack) -> None:
    """No message is repeated and no process is killed."""


def deliver_all_again(stack: Stack) -> None:
    """Publish every message since the beginning once more, as after a lost checkpoint."""
    with stack.stopped("users-relay", "orders-relay"):
        stack.fetch("users", PUBLISH_ALL_AGAIN)
        stack.fetch("orders", PUBLISH_ALL_AGAIN)


def kill_workers(stack: Stack) -> None:
    stack.kill("users-worker")
    stack.kill("orders-worker")


def kill_relays(stack: Stack) -> None:
    stack.kill("users-relay")
    stack.kill("orders-relay")


@pytest.mark.parametrize(
    "disturb", first_and_long([kill_workers, kill_relays, deliver_all_again, leave_alone], LONG)
)
def test_credit_is_reserved_refused_and_released(
    shop: Shop, stack: Stack, disturb: Callable[[Stack], None]
) -> None:
    first = shop.order(shop.dear)
    disturb(stack)
    assert shop.hometown.wait_for_decision(first)["status"] == "confirmed"
    assert shop.available() == "4611.12"

    disturb(stack)
    second = shop.decided(shop.cheap)
    assert (second["status"], second["reason"]) == ("rejected", "insufficient-credit")
    assert shop.available() == "4611.12"

    shop.hometown.cancel_order(first)
    disturb(stack)
    shop.wait_for_available(LIMIT)
    disturb(stack)
    assert shop.decided(shop.dear)["status"] == "confirmed"
    assert shop.available() == "4611.12"


def test_an_order_of_an_unknown_user_is_rejected(shop: Shop) -> None:
    order = shop.hometown.place_order(UNKNOWN_USER, [(shop.dear, 1)], shop.hour)

    decided = shop.hometown.wait_for_decision(order["order_id"])

    assert (decided["status"], decided["reason"]) == ("rejected", "unknown-user")


@LONG
def test_an_order_without_an_answer_times_out_and_its_late_credit_is_released(
    shop: Shop, stack: Stack
) -> None:
    with stack.stopped("users-worker"):
        order = shop.order(shop.dear)
        decided = eventually(
            lambda: shop.hometown.wait_for_decision(order),
            lambda seen: seen["status"] != "pending",
            what="the order times out",
        )
        assert (decided["status"], decided["reason"]) == ("rejected", "timed-out")

    assert shop.decided(shop.cheap)["status"] == "confirmed"
    shop.wait_for_available("5111.12")


def test_an_order_cancelled_before_its_answer_keeps_no_credit(shop: Shop, stack: Stack) -> None:
    with stack.stopped("users-worker"):
        order = shop.order(shop.dear)
        assert shop.hometown.cancel_order(order)["status"] == "cancelled"

    assert shop.decided(shop.cheap)["status"] == "confirmed"
    shop.wait_for_available("5111.12")
    assert shop.hometown.get_order(order)["status"] == "cancelled"
