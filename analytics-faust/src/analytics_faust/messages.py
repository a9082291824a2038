"""The events of the services, with only the fields that are used here."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from shared.eventsourcing.codec import Codec

USERS = "users.v1"
ITEMS = "items.v1"
ORDERS = "orders.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLives:
    """Registered or moved. effective_at is not read: the last value to arrive is used."""

    user_id: UUID
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDeleted:
    user_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemComes:
    """Listed, or its origin corrected."""

    item_id: UUID
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderLine:
    item_id: UUID
    quantity: int
    unit_price: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderConfirmed:
    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    ordered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCancelled:
    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    ordered_at: datetime
    was_confirmed: bool


UserFact = UserLives | UserDeleted
Order = OrderConfirmed | OrderCancelled

USER_FACTS: Codec[UserFact] = Codec(
    {"user-registered": UserLives, "user-moved": UserLives, "user-deleted": UserDeleted}
)
ITEM_FACTS: Codec[ItemComes] = Codec({"item-listed": ItemComes, "item-origin-corrected": ItemComes})
ORDER_FACTS: Codec[Order] = Codec(
    {"order-confirmed": OrderConfirmed, "order-cancelled": OrderCancelled}
)

VIEWS = ((USERS, USER_FACTS), (ITEMS, ITEM_FACTS), (ORDERS, ORDER_FACTS))
