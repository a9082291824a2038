"""The view that users-svc has of orders.v1: only the fields that it uses."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from shared.eventsourcing.codec import Codec

TOPIC = "orders.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlaced:
    order_id: UUID
    user_id: UUID
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderConfirmed:
    order_id: UUID
    user_id: UUID
    ordered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderClosed:
    """The order was rejected or cancelled."""

    order_id: UUID
    user_id: UUID


PLACED: Codec[OrderPlaced] = Codec({"order-placed": OrderPlaced})
CONFIRMED: Codec[OrderConfirmed] = Codec({"order-confirmed": OrderConfirmed})
CLOSED: Codec[OrderClosed] = Codec({"order-rejected": OrderClosed, "order-cancelled": OrderClosed})

VIEWS = ((TOPIC, PLACED), (TOPIC, CONFIRMED), (TOPIC, CLOSED))
