"""What things-svc reads of orders.v1: only the fields that it uses."""

from dataclasses import dataclass
from uuid import UUID

from shared.eventsourcing.codec import Codec

TOPIC = "orders.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderConfirmed:
    order_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCancelled:
    order_id: UUID


CONFIRMED: Codec[OrderConfirmed] = Codec({"order-confirmed": OrderConfirmed})
CANCELLED: Codec[OrderCancelled] = Codec({"order-cancelled": OrderCancelled})

VIEWS = ((TOPIC, CONFIRMED), (TOPIC, CANCELLED))
