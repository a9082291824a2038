"""An order as two pure functions: `decide` what a command leads to, `evolve` by what happened."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Literal, assert_never
from uuid import UUID

from orders_svc.order.commands import (
    CancelOrder,
    ConfirmOrder,
    OrderCommand,
    PlaceOrder,
    RejectOrder,
)
from orders_svc.order.events import (
    OrderCancelled,
    OrderConfirmed,
    OrderEvent,
    OrderLine,
    OrderPlaced,
    OrderRejected,
)
from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import NotFound, Refused

Status = Literal["pending", "confirmed", "rejected", "cancelled"]

TIMED_OUT = "timed-out"
UNKNOWN_ORDER = "unknown-order"
ALREADY_CANCELLED = "already-cancelled"
REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order's state; `reason` says why it was rejected or cancelled."""

    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    amount: Decimal
    ordered_at: datetime
    status: Status = "pending"
    reason: str | None = None


def decide(command: OrderCommand, order: Order | None) -> Sequence[OrderEvent]:
    """What a command leads to; nothing when there is nothing to do.

    Raises:
        NotFound: there is no such order.
        Refused: the business says no.
    """
    if isinstance(command, PlaceOrder):
        return place(command)
    if order is None:
        raise NotFound(UNKNOWN_ORDER, "there is no such order")
    match command:
        case ConfirmOrder():
            return confirm(order)
        case RejectOrder():
            return reject(command, order)
        case CancelOrder():
            return cancel(command, order)
        case _:
            assert_never(command)


def place(command: PlaceOrder) -> Sequence[OrderEvent]:
    return [
        OrderPlaced(
            order_id=command.order_id,
            user_id=command.user_id,
            lines=command.lines,
            amount=amount_of(command.lines),
            ordered_at=command.ordered_at,
        )
    ]


def amount_of(lines: Iterable[OrderLine]) -> Decimal:
    """What the lines cost together."""
    return sum((line.quantity * line.unit_price for line in lines), Decimal(0))


def confirm(order: Order) -> Sequence[OrderEvent]:
    """Stays quiet when the order was closed first: its closing releases the credit."""
    if order.status != "pending":
        return []
    return [
        OrderConfirmed(
            order_id=order.order_id,
            user_id=order.user_id,
            lines=order.lines,
            amount=order.amount,
            ordered_at=order.ordered_at,
        )
    ]


def reject(command: RejectOrder, order: Order) -> Sequence[OrderEvent]:
    """Stays quiet when the order is decided already."""
    if order.status != "pending":
        return []
    return [OrderRejected(order_id=order.order_id, user_id=order.user_id, reason=command.reason)]


def cancel(command: CancelOrder, order: Order) -> Sequence[OrderEvent]:
    if order.status == "cancelled":
        raise Refused(ALREADY_CANCELLED, "the order is cancelled")
    if order.status == "rejected":
        raise Refused(REJECTED, "the order was rejected, there is nothing to cancel")
    return [
        OrderCancelled(
            order_id=order.order_id,
            user_id=order.user_id,
            lines=order.lines,
            amount=order.amount,
            ordered_at=order.ordered_at,
            was_confirmed=order.status == "confirmed",
            reason=command.reason,
        )
    ]


def evolve(order: Order | None, event: OrderEvent) -> Order | None:
    """The state after one more event."""
    if isinstance(event, OrderPlaced):
        return Order(
            order_id=event.order_id,
            user_id=event.user_id,
            lines=event.lines,
            amount=event.amount,
            ordered_at=event.ordered_at,
        )
    assert order is not None, "a stream of orders begins with a placement"
    match event:
        case OrderConfirmed():
            return replace(order, status="confirmed")
        case OrderRejected():
            return replace(order, status="rejected", reason=event.reason)
        case OrderCancelled():
            return replace(order, status="cancelled", reason=event.reason)
        case _:
            assert_never(event)


ORDER: Decider[OrderCommand, Order | None, OrderEvent] = Decider(
    initial=None, decide=decide, evolve=evolve
)
