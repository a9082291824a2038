"""What happened to a user. The event store holds these.

`contract` lists those that are public; their docstrings are published with them, as descriptions.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from shared.eventsourcing.codec import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRegistered:
    """`personal_data` is sealed (see that module): an event is kept permanently, a name is not."""

    user_id: UUID
    personal_data: str
    address: str
    gender: str
    credit_limit: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMoved:
    user_id: UUID
    address: str
    gender: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCreditLimitChanged:
    user_id: UUID
    credit_limit: Decimal


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


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDeleted:
    """From `effective_at` on the user lives nowhere; what was counted before stays counted."""

    user_id: UUID
    effective_at: datetime


UserEvent = (
    UserRegistered
    | UserMoved
    | UserCreditLimitChanged
    | CreditReserved
    | CreditRefused
    | CreditReleased
    | UserDeleted
)

CODEC: Codec[UserEvent] = Codec(
    {
        "user-registered": UserRegistered,
        "user-moved": UserMoved,
        "user-credit-limit-changed": UserCreditLimitChanged,
        "credit-reserved": CreditReserved,
        "credit-refused": CreditRefused,
        "credit-released": CreditReleased,
        "user-deleted": UserDeleted,
    }
)
