"""What users-svc reads of orders.v1: only the fields that it uses."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from shared.codec import Codec

TOPIC = "orders.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlaced:
    order_id: UUID
    user_id: UUID
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderClosed:
    """The order was rejected or cancelled: it needs no credit any more."""

    order_id: UUID
    user_id: UUID


PLACED: Codec[OrderPlaced] = Codec({"order-placed": OrderPlaced})
CLOSED: Codec[OrderClosed] = Codec({"order-rejected": OrderClosed, "order-cancelled": OrderClosed})
