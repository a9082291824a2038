"""The actions of a plan. Users, items and orders are identified by their number."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterUser:
    user: int
    address: str
    gender: str
    credit_limit: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListItem:
    item: int
    type: str
    origin: str
    price: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveUser:
    user: int
    address: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RepriceItem:
    item: int
    price: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectOrigin:
    item: int
    origin: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOrder:
    """`lines` are (item, quantity)."""

    order: int
    user: int
    lines: tuple[tuple[int, int], ...]
    ordered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOrder:
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The request of another action again, with the same Idempotency-Key."""

    of: int


Request = (
    RegisterUser | ListItem | MoveUser | RepriceItem | CorrectOrigin | PlaceOrder | CancelOrder
)
Action = Request | Repeat

NAMES: dict[type[Action], str] = {
    RegisterUser: "register user",
    ListItem: "list item",
    MoveUser: "move user",
    RepriceItem: "reprice item",
    CorrectOrigin: "correct origin",
    PlaceOrder: "place order",
    CancelOrder: "cancel order",
    Repeat: "repeat",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An action with its place in the plan, and when it is due, in seconds since the start."""

    number: int
    due_seconds: float
    action: Action
