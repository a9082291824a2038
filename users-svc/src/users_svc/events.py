"""What happened to a user. Private: the outside sees `contract`."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from shared.codec import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRegistered:
    user_id: UUID
    name: str
    address: str
    gender: str
    birth_year: int | None
    credit_limit: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMoved:
    user_id: UUID
    address: str
    gender: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditReserved:
    user_id: UUID
    order_id: UUID
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditRefused:
    user_id: UUID
    order_id: UUID
    amount: Decimal
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditReleased:
    user_id: UUID
    order_id: UUID
    amount: Decimal


UserEvent = UserRegistered | UserMoved | CreditReserved | CreditRefused | CreditReleased

CODEC: Codec[UserEvent] = Codec(
    {
        "user-registered": UserRegistered,
        "user-moved": UserMoved,
        "credit-reserved": CreditReserved,
        "credit-refused": CreditRefused,
        "credit-released": CreditReleased,
    }
)
