"""The journey of an order: every hop that happened, no other, and unavailable services."""

from datetime import datetime

import pytest

from test_support.first_and_long import first_and_long
from test_support.system.clients import Hometown, Json
from test_support.system.eventually import eventually
from test_support.system.stack import Stack

LONG = pytest.mark.verify(part="end-to-end")
PRICE = "100.00"

Order = str
Step = tuple[str, str]
"""A hop, and the type of its event."""

ALL_OF_A_CONFIRMED_ORDER: set[Step] = {
    ("recorded", "order-placed"),
    ("published", "order-placed"),
    ("credit-decided", "credit-reserved"),
    ("recorded", "order-confirmed"),
    ("published", "order-confirmed"),
    ("counted", "order-confirmed"),
}


@pytest.fixture
def user(hometown: Hometown) -> str:
    jack = {"name": "Jack", "address": "BJ", "gender": "male", "credit_limit": "10000.00"}
    return str(hometown.register_user(**jack, effective_at="2015-12-11T00:00:00Z")["user_id"])


@pytest.fixture
def item(hometown: Hometown) -> str:
    thing = {"name": "thing", "type": "phone", "origin": "BJ", "price": PRICE}
    return str(hometown.list_item(**thing, effective_at="2015-12-11T00:00:00Z")["item_id"])


@pytest.fixture
def order(hometown: Hometown, user: str, item: str, hour: datetime) -> Order:
    return str(hometown.place_order(user, [(item, 1)], hour)["order_id"])


def steps(journey: Json) -> set[Step]:
    return {(hop["hop"], hop["type"]) for hop in journey["hops"]}


def journey_with(hometown: Hometown, order: Order, wanted: set[Step]) -> Json:
    """The journey as soon as it has these steps."""
    return eventually(
        lambda: hometown.journey(order),
        lambda seen: wanted <= steps(seen),
        what=f"a journey with {wanted}",
    )


def test_a_confirmed_order_is_reported_from_its_placement_to_its_cell(
    hometown: Hometown, order: Order, item: str, hour: datetime
) -> None:
    # Where the job reads the user or the item later than the order, it corrects the cell then.
    journey = eventually(
        lambda: journey_with(hometown, order, ALL_OF_A_CONFIRMED_ORDER),
        lambda seen: all(hop["cells"] for hop in seen["hops"] if hop["hop"] == "counted"),
        what="a journey with the cell that counts the order",
    )

    assert (journey["status"], journey["unknown"]) == ("confirmed", [])
    assert steps(journey) == ALL_OF_A_CONFIRMED_ORDER
    [counted] = [hop for hop in journey["hops"] if hop["hop"] == "counted"]
    assert counted["hour"] == hour.isoformat().replace("+00:00", "Z")
    assert counted["cells"] == [
        {"item_id": item, "address": "BJ", "purchases": 1, "quantity": 1, "amount": PRICE}
    ]
    published = [hop for hop in journey["hops"] if hop["hop"] == "published"]
    assert {hop["topic"] for hop in published} == {"orders.v1"}
    assert len({hop["partition"] for hop in published}) == 1
    assert published[0]["offset"] < published[1]["offset"]


def test_a_refused_order_names_the_reason(
    hometown: Hometown, user: str, item: str, hour: datetime
) -> None:
    order = hometown.place_order(user, [(item, 101)], hour)["order_id"]

    journey = journey_with(hometown, order, {("recorded", "order-rejected")})

    [decided] = [hop for hop in journey["hops"] if hop["hop"] == "credit-decided"]
    assert (decided["type"], decided["reason"]) == ("credit-refused", "insufficient-credit")


def test_a_cancellation_goes_all_the_way(hometown: Hometown, order: Order) -> None:
    journey_with(hometown, order, ALL_OF_A_CONFIRMED_ORDER)
    hometown.cancel_order(order)

    journey = journey_with(
        hometown,
        order,
        {("credit-decided", "credit-released"), ("counted", "order-cancelled")},
    )

    assert journey["status"] == "cancelled"
    assert journey["hops"][-1]["cells"] == []


STOPS: dict[str, set[Step]] = {
    "orders-relay": {("recorded", "order-placed")},
    "users-worker": {("recorded", "order-placed"), ("published", "order-placed")},
    "users-relay": {
        ("recorded", "order-placed"),
        ("published", "order-placed"),
        ("credit-decided", "credit-reserved"),
    },
    "analytics-job": ALL_OF_A_CONFIRMED_ORDER - {("counted", "order-confirmed")},
}
CRASHES = ("orders-relay", "orders-api", "orders-worker", "users-relay", "users-worker")


@pytest.mark.parametrize("process", first_and_long(STOPS, LONG))
def test_it_reports_what_has_happened_and_no_more_wherever_the_order_waits(
    hometown: Hometown,
    stack: Stack,
    user: str,
    item: str,
    hour: datetime,
    process: str,
) -> None:
    known = STOPS[process]
    with stack.stopped(process):
        order = hometown.place_order(user, [(item, 1)], hour)["order_id"]
        assert steps(journey_with(hometown, order, known)) == known

    journey_with(hometown, order, ALL_OF_A_CONFIRMED_ORDER)


@pytest.mark.parametrize("process", first_and_long(CRASHES, LONG))
def test_after_a_crash_anywhere_it_is_whole_and_has_no_step_twice(
    hometown: Hometown, stack: Stack, order: Order, process: str
) -> None:
    stack.kill(process)

    journey = journey_with(hometown, order, ALL_OF_A_CONFIRMED_ORDER)

    printed = [(hop["hop"], hop["type"]) for hop in journey["hops"]]
    assert sorted(printed) == sorted(set(printed))


def test_an_unavailable_service_is_named(hometown: Hometown, stack: Stack, order: Order) -> None:
    journey_with(hometown, order, ALL_OF_A_CONFIRMED_ORDER)

    with stack.stopped("users-api", "analytics-api"):
        journey = hometown.journey(order)

    unknown = [line.split(" is unavailable")[0] for line in journey["unknown"]]
    assert unknown == ["users-svc", "analytics"]
    assert steps(journey) == {
        step for step in ALL_OF_A_CONFIRMED_ORDER if step[0] in ("recorded", "published")
    }
