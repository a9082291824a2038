"""An order as two pure functions: `decide` on a command, `evolve` by an event."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar, Literal, assert_never
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
from shared.eventsourcing.decider import Decider, require_state
from shared.eventsourcing.errors import NotFound, Refused

Status = Literal["pending", "confirmed", "rejected", "cancelled"]

TIMED_OUT = "timed-out"
ORDERED_IN_THE_FUTURE = "ordered-in-the-future"
UNKNOWN_ORDER = "unknown-order"
ALREADY_CANCELLED = "already-cancelled"
REJECTED = "rejected"

AHEAD_MAX = timedelta(minutes=8)
"""From the confirmation of an order to the order's own time. The API accepts five minutes by its
clock, and what is ten minutes ahead of its record is not counted: between them is room for clocks
that differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPlaced:
    """No order has this id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The fields of every placed order; they never change."""

    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    amount: Decimal
    ordered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Placement):
    """The credit of its user is not decided on yet."""

    status: ClassVar[Status] = "pending"
    reason: ClassVar[None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed(Placement):
    status: ClassVar[Status] = "confirmed"
    reason: ClassVar[None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(Placement):
    status: ClassVar[Status] = "rejected"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled(Placement):
    status: ClassVar[Status] = "cancelled"
    reason: str


PlacedOrder = Pending | Confirmed | Rejected | Cancelled
Order = NotPlaced | PlacedOrder


def require_placed(order: Order) -> PlacedOrder:
    """The order. Raises NotFound: it was never placed."""
    if isinstance(order, NotPlaced):
        raise NotFound(UNKNOWN_ORDER, "there is no such order")
    return order


def decide(command: OrderCommand, order: Order) -> Sequence[OrderEvent]:
    """The events of a command; none when there is nothing to do.

    Raises:
        NotFound: there is no such order.
        Refused: a business rule refuses the command.
    """
    match command:
        case PlaceOrder():
            return place(command)
        case ConfirmOrder():
            return confirm(command, require_placed(order))
        case RejectOrder():
            return reject(command, require_placed(order))
        case CancelOrder():
            return cancel(command, require_placed(order))
        case _:
            assert_never(command)


def place(command: PlaceOrder) -> Sequence[OrderEvent]:
    """Valid since its command was made (`placing.to_command`); credit is decided later."""
    return [
        OrderPlaced(
            order_id=command.order_id,
            user_id=command.user_id,
            lines=command.lines,
            amount=compute_amount(command.lines),
            ordered_at=command.ordered_at,
        )
    ]


def compute_amount(lines: Iterable[OrderLine]) -> Decimal:
    """The sum of all lines."""
    return sum((line.quantity * line.unit_price for line in lines), Decimal(0))


def confirm(command: ConfirmOrder, order: PlacedOrder) -> Sequence[OrderEvent]:
    """No event when the order was closed first: its closing releases the credit.

    An order from the future was accepted by a process whose clock is wrong. It is rejected: it
    would not be counted, and a confirmed order always is, unless it is late.
    """
    if not isinstance(order, Pending):
        return []
    if order.ordered_at > command.confirmed_at + AHEAD_MAX:
        return reject(RejectOrder(reason=ORDERED_IN_THE_FUTURE), order)
    return [
        OrderConfirmed(
            order_id=order.order_id,
            user_id=order.user_id,
            lines=order.lines,
            amount=order.amount,
            ordered_at=order.ordered_at,
        )
    ]


def reject(command: RejectOrder, order: PlacedOrder) -> Sequence[OrderEvent]:
    """No event when the order is decided already."""
    if not isinstance(order, Pending):
        return []
    return [OrderRejected(order_id=order.order_id, user_id=order.user_id, reason=command.reason)]


def cancel(command: CancelOrder, order: PlacedOrder) -> Sequence[OrderEvent]:
    match order:
        case Cancelled():
            raise Refused(ALREADY_CANCELLED, "the order is already cancelled")
        case Rejected():
            raise Refused(REJECTED, "the order was rejected, and cannot be cancelled")
        case Pending() | Confirmed():
            return [
                OrderCancelled(
                    order_id=order.order_id,
                    user_id=order.user_id,
                    lines=order.lines,
                    amount=order.amount,
                    ordered_at=order.ordered_at,
                    was_confirmed=isinstance(order, Confirmed),
                    reason=command.reason,
                )
            ]
        case _:
            assert_never(order)


def evolve(order: Order, event: OrderEvent) -> Order:
    """The state after one more event. Raises ImpossibleHistory."""
    match event:
        case OrderPlaced():
            require_state(order, NotPlaced, event)
            return Pending(
                order_id=event.order_id,
                user_id=event.user_id,
                lines=event.lines,
                amount=event.amount,
                ordered_at=event.ordered_at,
            )
        case OrderConfirmed():
            require_state(order, Pending, event)
            return Confirmed(
                order_id=event.order_id,
                user_id=event.user_id,
                lines=event.lines,
                amount=event.amount,
                ordered_at=event.ordered_at,
            )
        case OrderRejected():
            pending = require_state(order, Pending, event)
            return Rejected(
                order_id=pending.order_id,
                user_id=pending.user_id,
                lines=pending.lines,
                amount=pending.amount,
                ordered_at=pending.ordered_at,
                reason=event.reason,
            )
        case OrderCancelled():
            require_state(order, Confirmed if event.was_confirmed else Pending, event)
            return Cancelled(
                order_id=event.order_id,
                user_id=event.user_id,
                lines=event.lines,
                amount=event.amount,
                ordered_at=event.ordered_at,
                reason=event.reason,
            )
        case _:
            assert_never(event)


ORDER: Decider[OrderCommand, Order, OrderEvent] = Decider(
    initial=NotPlaced(), decide=decide, evolve=evolve
)
