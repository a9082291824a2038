"""The commands to an order, with everything that a decision needs."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from orders_svc.order.events import CancelReason, OrderLine


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOrder:
    order_id: UUID
    user_id: UUID
    lines: tuple[OrderLine, ...]
    ordered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmOrder:
    confirmed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectOrder:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOrder:
    reason: CancelReason


OrderCommand = PlaceOrder | ConfirmOrder | RejectOrder | CancelOrder
