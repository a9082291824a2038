"""A user as two pure functions: `decide` on a command, `evolve` by an event."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import assert_never
from uuid import UUID

from shared.eventsourcing.decider import Decider, ImpossibleHistory, require_state
from shared.eventsourcing.errors import Gone, NotFound, Refused
from shared.eventsourcing.persistent_map import PersistentMap
from shared.eventsourcing.timeline import CHANGES_MAX, PRECISION, Timeline
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
TOO_MANY_MOVES = "too-many-moves"
LIMIT_BELOW_RESERVED = "limit-below-reserved"
HAS_PENDING_ORDERS = "has-pending-orders"
INSUFFICIENT_CREDIT = "insufficient-credit"
TOO_MANY_OPEN_ORDERS = "too-many-open-orders"

OPEN_ORDERS_MAX = 10_000
"""Orders of a user that reserve credit; it bounds the state of a user."""
ZERO = Decimal("0.00")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRegistered:
    """No user has this id, though orders can have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The reserved credit, by order, and its sum.

    An order is open, and reserves credit, until it is rejected or cancelled; neither closed nor
    refused orders are kept here.
    """

    user_id: UUID
    reserved: PersistentMap[UUID, Decimal] = field(default_factory=PersistentMap)
    reserved_credit: Decimal = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered(Account):
    """A user; `personal_data` is sealed."""

    personal_data: str
    gender: str
    credit_limit: Decimal
    addresses: Timeline[str]

    @property
    def address(self) -> str:
        """Where the user lives after all moves known so far."""
        return self.addresses.latest

    @property
    def available_credit(self) -> Decimal:
        return self.credit_limit - self.reserved_credit


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted(Account):
    """Orders that were confirmed before still count, and can be cancelled."""


User = NotRegistered | Registered | Deleted


def require_active(user: User) -> Registered:
    """The user, if they are registered and not deleted.

    Raises:
        NotFound: the user never registered.
        Gone: the user was deleted.
    """
    match user:
        case NotRegistered():
            raise NotFound(UNKNOWN_USER, "there is no such user")
        case Deleted():
            raise Gone(USER_DELETED, "the user was deleted")
        case Registered():
            return user
        case _:
            assert_never(user)


def decide(command: UserCommand, user: User) -> Sequence[UserEvent]:
    """The events of a command; none when there is nothing to do.

    Raises:
        NotFound: the user never registered.
        Gone: the user was deleted.
        Refused: a business rule refuses the command.
    """
    match command:
        case RegisterUser():
            return register(command, user)
        case MoveUser():
            return move(command, require_active(user))
        case ChangeCreditLimit():
            return change_credit_limit(command, require_active(user))
        case ReserveCredit():
            return reserve(command, user)
        case ReleaseCredit():
            return release(command, user)
        case DeleteUser():
            return delete(command, require_active(user))
        case _:
            assert_never(command)


def register(command: RegisterUser, user: User) -> Sequence[UserEvent]:
    if not isinstance(user, NotRegistered):
        raise Refused(ALREADY_REGISTERED, "a user with this id is, or was, registered")
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


def move(command: MoveUser, user: Registered) -> Sequence[UserEvent]:
    if user.addresses.at(command.effective_at) == command.address:
        raise Refused(SAME_ADDRESS, f"the user already lives in {command.address} at that time")
    if user.addresses.is_full:
        raise Refused(TOO_MANY_MOVES, f"a user moves at most {CHANGES_MAX:,} times")
    return [
        UserMoved(
            user_id=user.user_id,
            address=command.address,
            gender=user.gender,
            effective_at=command.effective_at,
        )
    ]


def change_credit_limit(command: ChangeCreditLimit, user: Registered) -> Sequence[UserEvent]:
    """No event when that is the limit already."""
    if command.credit_limit < user.reserved_credit:
        raise Refused(LIMIT_BELOW_RESERVED, f"orders have reserved {user.reserved_credit}")
    if command.credit_limit == user.credit_limit:
        return []
    return [UserCreditLimitChanged(user_id=user.user_id, credit_limit=command.credit_limit)]


def reserve(command: ReserveCredit, user: User) -> Sequence[UserEvent]:
    """Never refused with an error: the order waits for an answer, so a refusal is an event too."""
    match user:
        case NotRegistered():
            return refuse_credit(command, UNKNOWN_USER)
        case Registered() | Deleted() if command.order_id in user.reserved:
            return []
        case Deleted():
            return refuse_credit(command, USER_DELETED)
        case Registered() if len(user.reserved) >= OPEN_ORDERS_MAX:
            return refuse_credit(command, TOO_MANY_OPEN_ORDERS)
        case Registered() if command.amount > user.available_credit:
            return refuse_credit(command, INSUFFICIENT_CREDIT)
        case Registered():
            return [
                CreditReserved(
                    user_id=command.user_id, order_id=command.order_id, amount=command.amount
                )
            ]
        case _:
            assert_never(user)


def refuse_credit(command: ReserveCredit, reason: str) -> Sequence[UserEvent]:
    return [
        CreditRefused(
            user_id=command.user_id,
            order_id=command.order_id,
            amount=command.amount,
            reason=reason,
        )
    ]


def release(command: ReleaseCredit, user: User) -> Sequence[UserEvent]:
    """No event when nothing is reserved: the order was refused, or released before."""
    if isinstance(user, NotRegistered) or command.order_id not in user.reserved:
        return []
    amount = user.reserved[command.order_id]
    return [CreditReleased(user_id=user.user_id, order_id=command.order_id, amount=amount)]


def delete(command: DeleteUser, user: Registered) -> Sequence[UserEvent]:
    """Only when every order is decided: a pending order can still be confirmed by orders-svc.

    It is effective after the latest confirmed order, which can be dated some minutes ahead: an
    order of a user who lives nowhere would not be counted.
    """
    if pending := user.reserved.keys() - command.confirmed_orders.keys():
        raise Refused(HAS_PENDING_ORDERS, f"{len(pending)} orders of the user are pending")
    after_orders = [at + PRECISION for at in command.confirmed_orders.values()]
    effective_at = max([command.effective_at, *after_orders])
    return [UserDeleted(user_id=user.user_id, effective_at=effective_at)]


def evolve(user: User, event: UserEvent) -> User:
    """The state after one more event. Raises ImpossibleHistory."""
    match event:
        case UserRegistered():
            require_state(user, NotRegistered, event)
            return Registered(
                user_id=event.user_id,
                personal_data=event.personal_data,
                gender=event.gender,
                credit_limit=event.credit_limit,
                addresses=Timeline.begin(event.effective_at, event.address),
            )
        case UserMoved():
            before = require_state(user, Registered, event)
            addresses = before.addresses.changed(event.effective_at, event.address)
            return replace(before, addresses=addresses)
        case UserCreditLimitChanged():
            before = require_state(user, Registered, event)
            return replace(before, credit_limit=event.credit_limit)
        case CreditReserved():
            before = require_state(user, Registered, event)
            return replace(
                before,
                reserved=before.reserved.added(event.order_id, event.amount),
                reserved_credit=before.reserved_credit + event.amount,
            )
        case CreditRefused():
            return user
        case CreditReleased():
            return remove_reservation(user, event)
        case UserDeleted():
            before = require_state(user, Registered, event)
            return Deleted(
                user_id=before.user_id,
                reserved=before.reserved,
                reserved_credit=before.reserved_credit,
            )
        case _:
            assert_never(event)


def remove_reservation(user: User, event: CreditReleased) -> User:
    if isinstance(user, NotRegistered):
        raise ImpossibleHistory("CreditReleased after NotRegistered")
    amount = user.reserved.get(event.order_id, ZERO)
    return replace(
        user,
        reserved=user.reserved.removed(event.order_id),
        reserved_credit=user.reserved_credit - amount,
    )


def count_values(user: User) -> int:
    """Of a state: its open orders and addresses, which can be many."""
    match user:
        case NotRegistered():
            return 0
        case Registered():
            return len(user.reserved) + len(user.addresses)
        case Deleted():
            return len(user.reserved)
        case _:
            assert_never(user)


USER: Decider[UserCommand, User, UserEvent] = Decider(
    initial=NotRegistered(), decide=decide, evolve=evolve, count_values=count_values
)
