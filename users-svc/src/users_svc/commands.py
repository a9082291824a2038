"""The commands to a user, with everything that a decision needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterUser:
    """`personal_data` is sealed already: the business rules never see a name."""

    user_id: UUID
    personal_data: str
    address: str
    gender: str
    credit_limit: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveUser:
    address: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCreditLimit:
    credit_limit: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveCredit:
    user_id: UUID
    order_id: UUID
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCredit:
    order_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteUser:
    """`confirmed_orders` are the user's orders that are known to be confirmed, with their times."""

    confirmed_orders: Mapping[UUID, datetime]
    effective_at: datetime


UserCommand = (
    RegisterUser | MoveUser | ChangeCreditLimit | ReserveCredit | ReleaseCredit | DeleteUser
)
