"""Orders over HTTP become the hours that analytics answers: the vectors, end to end."""

from datetime import timedelta
from typing import Any

import pytest

from test_support.system.clients import Hometown, Json, rfc3339
from test_support.system.eventually import eventually
from test_support.system.sample import Sample

LONG = pytest.mark.verify(part="end-to-end")
BEFORE: dict[str, Any] = {"local_buyers": 4, "purchases": 4, "quantity": 12, "amount": "44506.56"}


def wait_for_hour(hometown: Hometown, sample: Sample, hours: int = 0, **expected: Any) -> Json:
    """The sample's hour, or one after it, as soon as it has all expected values."""
    hour = sample.hour + timedelta(hours=hours)
    return eventually(
        lambda: hometown.hour(hour),
        lambda answer: all(answer[name] == value for name, value in expected.items()),
        what=f"{hour} with {expected}",
    )


def by_origin(hour: Json) -> dict[str, tuple[int, int]]:
    """(local buyers, purchases) by origin."""
    return {
        cell["origin"]: (cell["local_buyers"], cell["purchases"])
        for cell in hour["cells"]
        if cell["purchases"]
    }


@pytest.fixture(autouse=True)
def counted_before(hometown: Hometown, sample: Sample) -> None:
    """Wait until the sample is counted before each test."""
    wait_for_hour(hometown, sample, **BEFORE)


def place(hometown: Hometown, sample: Sample, user: str, item: str, at: Any) -> Json:
    order = hometown.place_order(sample.users[user], [(sample.items[item], 1)], at)
    decided = hometown.wait_for_decision(order["order_id"])
    assert decided["status"] == "confirmed"
    return decided


def test_the_last_millisecond_belongs_to_the_hour(hometown: Hometown, sample: Sample) -> None:
    """Vector V3."""
    place(hometown, sample, "Jack", "iphone", sample.at(59, 59, 999))

    wait_for_hour(hometown, sample, local_buyers=4, purchases=5, quantity=13)


@LONG
def test_the_full_hour_belongs_to_the_next_one(hometown: Hometown, sample: Sample) -> None:
    """Vector V4."""
    place(hometown, sample, "Jack", "iphone", sample.at(60))

    wait_for_hour(hometown, sample, hours=1, local_buyers=1, purchases=1, amount="5388.88")
    wait_for_hour(hometown, sample, **BEFORE)


def test_a_purchase_is_local_where_the_user_lived_then(hometown: Hometown, sample: Sample) -> None:
    """Vector V6: Jack moves from BJ to SH at 00:30."""
    hometown.move_user(sample.users["Jack"], address="SH", effective_at=rfc3339(sample.at(30)))
    place(hometown, sample, "Jack", "ipad", sample.at(31))
    place(hometown, sample, "Jack", "iphone", sample.at(31))

    hour = wait_for_hour(hometown, sample, local_buyers=4, purchases=5, amount="49395.44")
    assert by_origin(hour) == {"BJ": (1, 1), "SH": (2, 2), "SZ": (1, 1), "GZ": (1, 1)}


def test_a_cancelled_order_is_taken_out_again(hometown: Hometown, sample: Sample) -> None:
    """Vector V10."""
    hometown.cancel_order(sample.orders["Jack", "iphone"]["order_id"])

    hour = wait_for_hour(hometown, sample, local_buyers=3, purchases=3, amount="28339.92")
    assert "BJ" not in by_origin(hour)


@LONG
def test_one_buyer_with_two_purchases_is_one_buyer(hometown: Hometown, sample: Sample) -> None:
    """Vector V12."""
    place(hometown, sample, "Lucy", "ipod", sample.at(5))

    hour = wait_for_hour(hometown, sample, local_buyers=4, purchases=5)
    assert by_origin(hour)["GZ"] == (1, 2)


@LONG
def test_each_line_of_an_order_is_a_purchase(hometown: Hometown, sample: Sample) -> None:
    lines = [(sample.items["iphone"], 1), (sample.items["iphone"], 2), (sample.items["ipad"], 1)]
    order = hometown.place_order(sample.users["Jack"], lines, sample.at(7))
    hometown.wait_for_decision(order["order_id"])

    wait_for_hour(hometown, sample, local_buyers=4, purchases=6, quantity=15, amount="60673.20")
