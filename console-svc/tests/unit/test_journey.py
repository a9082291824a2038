"""The line of time of an order, from the response of orders-api."""

from typing import Any

from console_svc.journey import build_journey

TRACE = "0af7651916cd43dd8448eb211c80319c"


def journey(status: str, *hops: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {"order_id": "01", "status": status, "hops": list(hops), "unknown": [], **other}


def hop(name: str, second: str, **other: Any) -> dict[str, Any]:
    return {"hop": name, "at": f"2016-11-11T00:00:{second}Z", "trace_id": TRACE, **other}


PLACED = hop("recorded", "00", type="order-placed")
PUBLISHED = hop(
    "published", "00.125", type="order-placed", topic="orders.v1", partition=3, offset=17
)
CELL = {"item_id": "02", "address": "BJ", "purchases": 1, "quantity": 2, "amount": "3.00"}
COUNTED = hop("counted", "02", type="order-confirmed", batch_id=4, cells=[CELL])


def test_each_hop_has_the_time_since_the_placement() -> None:
    made = build_journey(journey("confirmed", PLACED, PUBLISHED, COUNTED))

    assert [(each.what, each.after_milliseconds) for each in made.hops] == [
        ("recorded in the event store", 0),
        ("published to orders.v1, partition 3, offset 17", 125),
        ("counted by Spark in batch 4", 2000),
    ]
    assert made.hops[-1].detail == "2 for 3.00 from BJ, where the buyer lives"
    assert (made.trace_id, made.is_over) == (TRACE, True)


def test_an_order_that_is_not_counted_yet_is_on_its_way() -> None:
    assert not build_journey(journey("confirmed", PLACED, PUBLISHED)).is_over
    assert not build_journey(journey("pending")).is_over


def test_a_refusal_is_the_end_and_has_its_reason() -> None:
    refused = hop("credit-decided", "01", type="credit-refused", reason="insufficient-credit")
    made = build_journey(journey("rejected", PLACED, refused))

    assert made.is_over
    assert (made.hops[1].is_bad, made.hops[1].reason) == (True, "insufficient-credit")


def test_a_purchase_from_elsewhere_says_so() -> None:
    made = build_journey(journey("confirmed", PLACED, {**COUNTED, "cells": []}))

    assert made.hops[-1].detail.startswith("no local purchase")


def test_what_did_not_respond_is_named() -> None:
    assert build_journey(journey("pending", unknown=["users-svc is unavailable"])).unknown == [
        "users-svc is unavailable"
    ]
