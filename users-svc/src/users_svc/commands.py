"""What is asked of a user's stream, with everything that the decision needs."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterUser:
    user_id: UUID
    name: str
    address: str
    gender: str
    birth_year: int | None
    credit_limit: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveUser:
    address: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveCredit:
    user_id: UUID
    order_id: UUID
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCredit:
    order_id: UUID


UserCommand = RegisterUser | MoveUser | ReserveCredit | ReleaseCredit
