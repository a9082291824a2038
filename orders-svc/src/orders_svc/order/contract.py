"""What the outside may know: the public events of orders.v1, and how ours become them."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import assert_never
from uuid import UUID

from orders_svc.order import events
from orders_svc.order.events import OrderEvent
from shared.eventsourcing.codec import Codec
from shared.messaging.messages import PublicEvent

TOPIC = "orders.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderLine:
    item_id: UUID
    quantity: int
    unit_price: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlaced:
    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    amount: Decimal
    ordered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderConfirmed:
    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    amount: Decimal
    ordered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRejected:
    order_id: UUID
    user_id: UUID
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCancelled:
    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    amount: Decimal
    ordered_at: datetime
    was_confirmed: bool
    reason: str


PublicOrderEvent = OrderPlaced | OrderConfirmed | OrderRejected | OrderCancelled

CODEC: Codec[PublicOrderEvent] = Codec(
    {
        "order-placed": OrderPlaced,
        "order-confirmed": OrderConfirmed,
        "order-rejected": OrderRejected,
        "order-cancelled": OrderCancelled,
    }
)


def publish(event: OrderEvent) -> PublicEvent:
    """The public form of an event.

    The key is the user, not the order: all of a user's orders keep their order, and lie in the
    same partitions as the user's own events.
    """
    return CODEC.public(public_of(event), topic=TOPIC, key=str(event.user_id))


def public_of(event: OrderEvent) -> PublicOrderEvent:
    match event:
        case events.OrderPlaced():
            return OrderPlaced(
                order_id=event.order_id,
                user_id=event.user_id,
                lines=public_lines(event.lines),
                amount=event.amount,
                ordered_at=event.ordered_at,
            )
        case events.OrderConfirmed():
            return OrderConfirmed(
                order_id=event.order_id,
                user_id=event.user_id,
                lines=public_lines(event.lines),
                amount=event.amount,
                ordered_at=event.ordered_at,
            )
        case events.OrderRejected():
            return OrderRejected(
                order_id=event.order_id, user_id=event.user_id, reason=event.reason
            )
        case events.OrderCancelled():
            return OrderCancelled(
                order_id=event.order_id,
                user_id=event.user_id,
                lines=public_lines(event.lines),
                amount=event.amount,
                ordered_at=event.ordered_at,
                was_confirmed=event.was_confirmed,
                reason=event.reason,
            )
        case _:
            assert_never(event)


def public_lines(lines: tuple[events.OrderLine, ...]) -> tuple[OrderLine, ...]:
    return tuple(
        OrderLine(item_id=line.item_id, quantity=line.quantity, unit_price=line.unit_price)
        for line in lines
    )
