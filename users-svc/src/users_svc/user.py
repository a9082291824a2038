"""A user as two pure functions: `decide` what a command leads to, `evolve` by what happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import assert_never
from uuid import UUID

from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import Gone, NotFound, Refused
from shared.eventsourcing.timeline import Timeline
from users_svc.commands import (
    ChangeCreditLimit,
    DeleteUser,
    MoveUser,
    RegisterUser,
    ReleaseCredit,
    ReserveCredit,
    UserCommand,
)
from users_svc.events import (
    CreditRefused,
    CreditReleased,
    CreditReserved,
    UserCreditLimitChanged,
    UserDeleted,
    UserEvent,
    UserMoved,
    UserRegistered,
)

UNKNOWN_USER = "unknown-user"
USER_DELETED = "user-deleted"
ALREADY_REGISTERED = "already-registered"
SAME_ADDRESS = "same-address"
LIMIT_BELOW_RESERVED = "limit-below-reserved"
HAS_PENDING_ORDERS = "has-pending-orders"
INSUFFICIENT_CREDIT = "insufficient-credit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Who a user is; `personal_data` is sealed."""

    user_id: UUID
    personal_data: str
    gender: str
    credit_limit: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user's state. `profile` is None for somebody who never registered.

    `reserved` holds the amounts of open and confirmed orders, of a deleted user as well: orders
    that were confirmed still count, and can be cancelled.
    """

    profile: Profile | None = None
    deleted: bool = False
    addresses: Timeline[str] = field(default_factory=Timeline)
    reserved: Mapping[UUID, Decimal] = field(default_factory=dict)

    @property
    def reserved_credit(self) -> Decimal:
        return sum(self.reserved.values(), Decimal("0.00"))

    @property
    def available_credit(self) -> Decimal:
        limit = self.profile.credit_limit if self.profile else Decimal("0.00")
        return limit - self.reserved_credit


def require_active(user: User) -> Profile:
    """The profile of a user who is still there.

    Raises:
        NotFound: the user never registered.
        Gone: the user was deleted.
    """
    if user.profile is None:
        raise NotFound(UNKNOWN_USER, "there is no such user")
    if user.deleted:
        raise Gone(USER_DELETED, "the user was deleted")
    return user.profile


def decide(command: UserCommand, user: User) -> Sequence[UserEvent]:
    """What a command leads to; nothing when there is nothing to do.

    Raises:
        NotFound: the user never registered.
        Gone: the user was deleted.
        Refused: the business says no.
    """
    match command:
        case RegisterUser():
            return register(command, user)
        case MoveUser():
            return move(command, user)
        case ChangeCreditLimit():
            return change_credit_limit(command, user)
        case ReserveCredit():
            return reserve(command, user)
        case ReleaseCredit():
            return release(command, user)
        case DeleteUser():
            return delete(command, user)
        case _:
            assert_never(command)


def register(command: RegisterUser, user: User) -> Sequence[UserEvent]:
    if user.profile is not None:
        raise Refused(ALREADY_REGISTERED, "there is, or was, such a user already")
    return [
        UserRegistered(
            user_id=command.user_id,
            personal_data=command.personal_data,
            address=command.address,
            gender=command.gender,
            credit_limit=command.credit_limit,
            effective_at=command.effective_at,
        )
    ]


def move(command: MoveUser, user: User) -> Sequence[UserEvent]:
    profile = require_active(user)
    if user.addresses.at(command.effective_at) == command.address:
        raise Refused(SAME_ADDRESS, f"the user lives in {command.address} at that time")
    return [
        UserMoved(
            user_id=profile.user_id,
            address=command.address,
            gender=profile.gender,
            effective_at=command.effective_at,
        )
    ]


def change_credit_limit(command: ChangeCreditLimit, user: User) -> Sequence[UserEvent]:
    """Stays quiet when that is the limit already."""
    profile = require_active(user)
    if command.credit_limit < user.reserved_credit:
        raise Refused(LIMIT_BELOW_RESERVED, f"{user.reserved_credit} are reserved by orders")
    if command.credit_limit == profile.credit_limit:
        return []
    return [UserCreditLimitChanged(user_id=profile.user_id, credit_limit=command.credit_limit)]


def reserve(command: ReserveCredit, user: User) -> Sequence[UserEvent]:
    """Never refused with an error: the order waits for an answer, so a no is an event too."""
    if command.order_id in user.reserved:
        return []
    if user.profile is None:
        reason = UNKNOWN_USER
    elif user.deleted:
        reason = USER_DELETED
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


def delete(command: DeleteUser, user: User) -> Sequence[UserEvent]:
    """Only once every order is decided: one that is pending here may be confirmed elsewhere."""
    profile = require_active(user)
    if pending := user.reserved.keys() - command.confirmed_orders:
        raise Refused(HAS_PENDING_ORDERS, f"{len(pending)} orders of the user are not decided yet")
    return [UserDeleted(user_id=profile.user_id, effective_at=command.effective_at)]


def evolve(user: User, event: UserEvent) -> User:
    """The state after one more event."""
    match event:
        case UserRegistered():
            profile = Profile(
                user_id=event.user_id,
                personal_data=event.personal_data,
                gender=event.gender,
                credit_limit=event.credit_limit,
            )
            addresses = Timeline(((event.effective_at, event.address),))
            return replace(user, profile=profile, addresses=addresses)
        case UserMoved():
            addresses = user.addresses.changed(event.effective_at, event.address)
            return replace(user, addresses=addresses)
        case UserCreditLimitChanged():
            assert user.profile is not None
            return replace(user, profile=replace(user.profile, credit_limit=event.credit_limit))
        case CreditReserved():
            return replace(user, reserved={**user.reserved, event.order_id: event.amount})
        case CreditRefused():
            return user
        case CreditReleased():
            kept = {
                order: amount for order, amount in user.reserved.items() if order != event.order_id
            }
            return replace(user, reserved=kept)
        case UserDeleted():
            return replace(user, deleted=True)
        case _:
            assert_never(event)


USER: Decider[UserCommand, User, UserEvent] = Decider(initial=User(), decide=decide, evolve=evolve)
