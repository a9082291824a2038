"""The view that users-svc has of orders.v1: only the fields that it uses."""

from dataclasses import dataclass
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
class OrderDecided:
    """The order was confirmed, rejected or cancelled."""

    order_id: UUID
    user_id: UUID


PLACED: Codec[OrderPlaced] = Codec({"order-placed": OrderPlaced})
DECIDED: Codec[OrderDecided] = Codec(
    {
        "order-confirmed": OrderDecided,
        "order-rejected": OrderDecided,
        "order-cancelled": OrderDecided,
    }
)

VIEWS = ((TOPIC, PLACED), (TOPIC, DECIDED))
