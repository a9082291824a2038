"""The view that orders-svc has of users.v1: only the fields that it uses."""

from dataclasses import dataclass
from uuid import UUID

from shared.eventsourcing.codec import Codec

TOPIC = "users.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditReserved:
    order_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditRefused:
    order_id: UUID
    reason: str


CreditAnswer = CreditReserved | CreditRefused

CODEC: Codec[CreditAnswer] = Codec(
    {"credit-reserved": CreditReserved, "credit-refused": CreditRefused}
)

VIEWS = ((TOPIC, CODEC),)
