"""What happened to an order. The event store holds these.

`contract` lists those that are public; their docstrings are published with them, as descriptions.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal, get_args
from uuid import UUID

from pydantic import BeforeValidator, Field

from shared.eventsourcing.codec import Codec
from shared.messaging.bounds import QUANTITY_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderLine:
    item_id: UUID
    quantity: Annotated[int, Field(ge=1, le=QUANTITY_MAX)]
    unit_price: Decimal  # of the item when the order was placed


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlaced:
    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    amount: Decimal
    ordered_at: datetime


# It carries the whole order, so that a reader need not join it with its placement.
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


CancelReason = Literal[
    "changed-my-mind", "ordered-by-mistake", "found-cheaper", "takes-too-long", "other"
]
"""A list, because text that a caller writes could name a person, and no event can be deleted."""

CANCELLED = "order-cancelled"
OTHER: CancelReason = "other"


def to_reason(text: object) -> object:
    """The reason in an event; callers wrote any text before 2026-11-26, which is not read."""
    return OTHER if isinstance(text, str) and text not in get_args(CancelReason) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCancelled:
    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    amount: Decimal
    ordered_at: datetime
    was_confirmed: bool  # true if the order had counted as a purchase
    reason: Annotated[str, BeforeValidator(to_reason)]


OrderEvent = OrderPlaced | OrderConfirmed | OrderRejected | OrderCancelled

CODEC: Codec[OrderEvent] = Codec(
    {
        "order-placed": OrderPlaced,
        "order-confirmed": OrderConfirmed,
        "order-rejected": OrderRejected,
        CANCELLED: OrderCancelled,
    }
)
