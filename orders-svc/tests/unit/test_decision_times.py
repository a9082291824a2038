"""How long an order waited for its decision is measured once, with what was decided."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from orders_svc.order import contract, decision_times
from orders_svc.order.events import (
    OrderCancelled,
    OrderConfirmed,
    OrderEvent,
    OrderPlaced,
    OrderRejected,
)
from orders_svc.order.order import TIMED_OUT
from shared.messaging.messages import Message
from shared.runtime.identifiers import new_id, to_timestamp

ORDER_ID, USER_ID = new_id(), UUID(int=2)
PLACED_AT = datetime.fromtimestamp(to_timestamp(ORDER_ID), UTC)
WHOLE: dict[str, Any] = {
    "order_id": ORDER_ID,
    "user_id": USER_ID,
    "lines": (),
    "amount": Decimal(0),
    "ordered_at": PLACED_AT,
}
PLACED = OrderPlaced(**WHOLE)
CONFIRMED = OrderConfirmed(**WHOLE)
CANCELLED = OrderCancelled(**WHOLE, was_confirmed=False, reason="other")


def reject(reason: str) -> OrderRejected:
    return OrderRejected(order_id=ORDER_ID, user_id=USER_ID, reason=reason)


def to_message(
    event: OrderEvent, version: int, seconds: float, order_id: UUID = ORDER_ID
) -> Message:
    """The message of an event that was recorded so long after the order was placed."""
    public = contract.publish(event)
    return Message(
        topic=public.topic,
        partition=0,
        offset=version,
        key=public.key,
        event_id=new_id(),
        type=public.type,
        schema_version=public.schema_version,
        stream_id=order_id,
        stream_version=version,
        previous_version=version - 1,
        correlation_id=ORDER_ID,
        time=PLACED_AT + timedelta(seconds=seconds),
        traceparent=None,
        data=public.value,
    )


Measured = list[tuple[float, str]]


def measure(monkeypatch: pytest.MonkeyPatch, messages: Sequence[Message]) -> Measured:
    """The seconds, to the millisecond, and the outcome of each value that is recorded."""
    measured: Measured = []
    monkeypatch.setattr(
        decision_times.DURATION,
        "record",
        lambda seconds, outcome: measured.append((round(seconds, 3), outcome)),
    )
    decision_times.record(messages)
    return measured


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        (CONFIRMED, "confirmed"),
        (reject("insufficient-credit"), "rejected"),
        (reject(TIMED_OUT), TIMED_OUT),
        (CANCELLED, "cancelled"),
    ],
    ids=["confirmed", "rejected", "timed-out", "cancelled"],
)
def test_a_decision_is_measured_from_the_placing(
    monkeypatch: pytest.MonkeyPatch, event: OrderEvent, outcome: str
) -> None:
    messages = [to_message(PLACED, 1, 0), to_message(event, 2, 1.5)]

    assert measure(monkeypatch, messages) == [(1.5, outcome)]


def test_the_cancellation_of_a_confirmed_order_is_no_second_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages = [to_message(CONFIRMED, 2, 1), to_message(CANCELLED, 3, 3600)]

    assert measure(monkeypatch, messages) == [(1.0, "confirmed")]


def test_a_clock_that_is_behind_makes_no_negative_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert measure(monkeypatch, [to_message(CONFIRMED, 2, -60)]) == [(0.0, "confirmed")]


@pytest.mark.parametrize("order_id", [UUID(int=0), UUID(int=2**128 - 1)], ids=["least", "greatest"])
def test_an_id_without_a_time_costs_no_message(
    monkeypatch: pytest.MonkeyPatch, order_id: UUID
) -> None:
    """An error would park the stream of the order."""
    [(seconds, _)] = measure(monkeypatch, [to_message(CONFIRMED, 2, 1, order_id)])

    assert seconds >= 0
