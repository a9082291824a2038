"""What happened to an order. Private: the outside sees `contract`."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from shared.eventsourcing.codec import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderLine:
    """One purchase; `unit_price` is the item's price when the order was placed."""

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
    """Carries the whole order, so that a reader need not join it with its placement."""

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
    """Carries the whole order; `was_confirmed` tells whether it had counted as a purchase."""

    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    amount: Decimal
    ordered_at: datetime
    was_confirmed: bool
    reason: str


OrderEvent = OrderPlaced | OrderConfirmed | OrderRejected | OrderCancelled

CODEC: Codec[OrderEvent] = Codec(
    {
        "order-placed": OrderPlaced,
        "order-confirmed": OrderConfirmed,
        "order-rejected": OrderRejected,
        "order-cancelled": OrderCancelled,
    }
)
