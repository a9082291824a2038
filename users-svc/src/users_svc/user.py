"""A user as two pure functions: `decide` what a command leads to, `evolve` by what happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import assert_never
from uuid import UUID

from shared.decider import Decider
from shared.errors import NotFound, Refused
from users_svc.commands import MoveUser, RegisterUser, ReleaseCredit, ReserveCredit, UserCommand
from users_svc.events import (
    CreditRefused,
    CreditReleased,
    CreditReserved,
    UserEvent,
    UserMoved,
    UserRegistered,
)

UNKNOWN_USER = "unknown-user"
INSUFFICIENT_CREDIT = "insufficient-credit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Who a user is."""

    user_id: UUID
    name: str
    gender: str
    birth_year: int | None
    credit_limit: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user's state. `profile` is None for somebody who never registered.

    `addresses` are (effective from, region code), oldest first; `reserved` holds the amounts of
    open and confirmed orders.
    """

    profile: Profile | None = None
    addresses: tuple[tuple[datetime, str], ...] = ()
    reserved: Mapping[UUID, Decimal] = field(default_factory=dict)

    @property
    def address(self) -> str | None:
        """Where the user lives after all moves known so far."""
        return self.addresses[-1][1] if self.addresses else None

    def address_at(self, instant: datetime) -> str | None:
        """Where the user lived at an instant; None before the first address."""
        lived = [address for since, address in self.addresses if since <= instant]
        return lived[-1] if lived else None

    @property
    def reserved_credit(self) -> Decimal:
        return sum(self.reserved.values(), Decimal("0.00"))

    @property
    def available_credit(self) -> Decimal:
        limit = self.profile.credit_limit if self.profile else Decimal("0.00")
        return limit - self.reserved_credit


def decide(command: UserCommand, user: User) -> Sequence[UserEvent]:
    """What a command leads to; nothing when there is nothing to do.

    Raises:
        NotFound: the user never registered.
        Refused: the business says no.
    """
    match command:
        case RegisterUser():
            return register(command)
        case MoveUser():
            return move(command, user)
        case ReserveCredit():
            return reserve(command, user)
        case ReleaseCredit():
            return release(command, user)
        case _:
            assert_never(command)


def register(command: RegisterUser) -> Sequence[UserEvent]:
    return [
        UserRegistered(
            user_id=command.user_id,
            name=command.name,
            address=command.address,
            gender=command.gender,
            birth_year=command.birth_year,
            credit_limit=command.credit_limit,
            effective_at=command.effective_at,
        )
    ]


def move(command: MoveUser, user: User) -> Sequence[UserEvent]:
    if user.profile is None:
        raise NotFound(UNKNOWN_USER, "there is no such user")
    if user.address_at(command.effective_at) == command.address:
        raise Refused("same-address", f"the user lives in {command.address} at that time")
    return [
        UserMoved(
            user_id=user.profile.user_id,
            address=command.address,
            gender=user.profile.gender,
            effective_at=command.effective_at,
        )
    ]


def reserve(command: ReserveCredit, user: User) -> Sequence[UserEvent]:
    """Never refused with an error: the order waits for an answer, so a no is an event too."""
    if command.order_id in user.reserved:
        return []
    if user.profile is None:
        reason = UNKNOWN_USER
    elif command.amount > user.available_credit:
        reason = INSUFFICIENT_CREDIT
    else:
        return [
            CreditReserved(
                user_id=command.user_id, order_id=command.order_id, amount=command.amount
            )
        ]
    return [
        CreditRefused(
            user_id=command.user_id,
            order_id=command.order_id,
            amount=command.amount,
            reason=reason,
        )
    ]


def release(command: ReleaseCredit, user: User) -> Sequence[UserEvent]:
    """Stays quiet when nothing is reserved: the order was refused, or released before."""
    amount = user.reserved.get(command.order_id)
    if amount is None or user.profile is None:
        return []
    return [CreditReleased(user_id=user.profile.user_id, order_id=command.order_id, amount=amount)]


def evolve(user: User, event: UserEvent) -> User:
    """The state after one more event."""
    match event:
        case UserRegistered():
            profile = Profile(
                user_id=event.user_id,
                name=event.name,
                gender=event.gender,
                birth_year=event.birth_year,
                credit_limit=event.credit_limit,
            )
            return replace(user, profile=profile, addresses=((event.effective_at, event.address),))
        case UserMoved():
            # Stable by time: of two moves effective at one instant the later recorded one counts.
            addresses = sorted(
                [*user.addresses, (event.effective_at, event.address)], key=lambda each: each[0]
            )
            return replace(user, addresses=tuple(addresses))
        case CreditReserved():
            return replace(user, reserved={**user.reserved, event.order_id: event.amount})
        case CreditRefused():
            return user
        case CreditReleased():
            kept = {
                order: amount for order, amount in user.reserved.items() if order != event.order_id
            }
            return replace(user, reserved=kept)
        case _:
            assert_never(event)


USER: Decider[UserCommand, User, UserEvent] = Decider(initial=User(), decide=decide, evolve=evolve)
