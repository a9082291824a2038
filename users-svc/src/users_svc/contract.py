"""The public events of users.v1, for other services.

An event is public as it is in `events`, unless its public form is a class here.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from shared.eventsourcing.codec import Codec
from shared.messaging.messages import PublicEvent
from users_svc import events
from users_svc.events import (
    CreditRefused,
    CreditReleased,
    CreditReserved,
    UserCreditLimitChanged,
    UserDeleted,
    UserEvent,
    UserMoved,
)

TOPIC = "users.v1"


# Without the personal data: no other service needs a name or a birth year.
@dataclass(frozen=True, slots=True, kw_only=True)
class UserRegistered:
    user_id: UUID
    address: str
    gender: str
    credit_limit: Decimal
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
    return CODEC.to_public_event(to_public(event), topic=TOPIC, key=str(event.user_id))


def to_public(event: UserEvent) -> PublicUserEvent:
    if isinstance(event, events.UserRegistered):
        return UserRegistered(
            user_id=event.user_id,
            address=event.address,
            gender=event.gender,
            credit_limit=event.credit_limit,
            effective_at=event.effective_at,
        )
    return event
