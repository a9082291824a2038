"""What the outside may know: the public events of users.v1, and how ours become them.

No name and no birth year: nobody outside needs them.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import assert_never
from uuid import UUID

from shared.eventsourcing.codec import Codec
from shared.messaging.messages import PublicEvent
from users_svc import events
from users_svc.events import UserEvent

TOPIC = "users.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRegistered:
    user_id: UUID
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


PublicUserEvent = (
    UserRegistered
    | UserMoved
    | UserCreditLimitChanged
    | CreditReserved
    | CreditRefused
    | CreditReleased
    | UserDeleted
)

CODEC: Codec[PublicUserEvent] = Codec(
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


def publish(event: UserEvent) -> PublicEvent:
    """The public form of an event; all events of a user share the user's id as key."""
    return CODEC.public(public_of(event), topic=TOPIC, key=str(event.user_id))


def public_of(event: UserEvent) -> PublicUserEvent:
    match event:
        case events.UserRegistered():
            return UserRegistered(
                user_id=event.user_id,
                address=event.address,
                gender=event.gender,
                credit_limit=event.credit_limit,
                effective_at=event.effective_at,
            )
        case events.UserMoved():
            return UserMoved(
                user_id=event.user_id,
                address=event.address,
                gender=event.gender,
                effective_at=event.effective_at,
            )
        case events.UserCreditLimitChanged():
            return UserCreditLimitChanged(user_id=event.user_id, credit_limit=event.credit_limit)
        case events.CreditReserved():
            return CreditReserved(
                user_id=event.user_id, order_id=event.order_id, amount=event.amount
            )
        case events.CreditRefused():
            return CreditRefused(
                user_id=event.user_id,
                order_id=event.order_id,
                amount=event.amount,
                reason=event.reason,
            )
        case events.CreditReleased():
            return CreditReleased(
                user_id=event.user_id, order_id=event.order_id, amount=event.amount
            )
        case events.UserDeleted():
            return UserDeleted(user_id=event.user_id, effective_at=event.effective_at)
        case _:
            assert_never(event)
