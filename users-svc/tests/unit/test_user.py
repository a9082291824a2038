"""Each command of a user: the right events, a no, or quiet."""

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from shared.testing import given
from users_svc.commands import MoveUser, RegisterUser, ReleaseCredit, ReserveCredit
from users_svc.events import (
    CreditRefused,
    CreditReleased,
    CreditReserved,
    UserEvent,
    UserMoved,
    UserRegistered,
)
from users_svc.user import USER

JACK = UUID(int=1)
FIRST, SECOND = UUID(int=11), UUID(int=12)
WINTER = datetime(2015, 12, 11, tzinfo=UTC)
HALF_PAST = datetime(2016, 11, 11, 0, 30, tzinfo=UTC)
LATER = datetime(2016, 11, 11, 2, tzinfo=UTC)

REGISTERED = UserRegistered(
    user_id=JACK,
    name="Jack",
    address="BJ",
    gender="male",
    birth_year=1993,
    credit_limit=Decimal("10000.00"),
    effective_at=WINTER,
)


def moved(address: str, at: datetime) -> UserMoved:
    return UserMoved(user_id=JACK, address=address, gender="male", effective_at=at)


def reserve(order: UUID, amount: str) -> ReserveCredit:
    return ReserveCredit(user_id=JACK, order_id=order, amount=Decimal(amount))


def reserved(order: UUID, amount: str) -> CreditReserved:
    return CreditReserved(user_id=JACK, order_id=order, amount=Decimal(amount))


def refused(order: UUID, amount: str, reason: str) -> CreditRefused:
    return CreditRefused(user_id=JACK, order_id=order, amount=Decimal(amount), reason=reason)


def released(order: UUID, amount: str) -> CreditReleased:
    return CreditReleased(user_id=JACK, order_id=order, amount=Decimal(amount))


def test_a_newcomer_is_registered() -> None:
    command = RegisterUser(
        user_id=JACK,
        name="Jack",
        address="BJ",
        gender="male",
        birth_year=1993,
        credit_limit=Decimal("10000.00"),
        effective_at=WINTER,
    )

    given(USER).when(command).then(REGISTERED)


def test_a_user_moves() -> None:
    given(USER, REGISTERED).when(MoveUser(address="SH", effective_at=HALF_PAST)).then(
        moved("SH", HALF_PAST)
    )


def test_a_stranger_cannot_move() -> None:
    given(USER).when(MoveUser(address="SH", effective_at=HALF_PAST)).then_no("unknown-user")


def test_nobody_moves_to_where_they_live() -> None:
    given(USER, REGISTERED).when(MoveUser(address="BJ", effective_at=HALF_PAST)).then_no(
        "same-address"
    )


def test_a_move_announced_late_is_judged_by_its_own_time() -> None:
    """Jack lives in SH since 02:00; a move to SH at 00:30, when he lived in BJ, is news."""
    past = (REGISTERED, moved("SH", LATER))

    given(USER, *past).when(MoveUser(address="SH", effective_at=HALF_PAST)).then(
        moved("SH", HALF_PAST)
    )
    given(USER, *past).when(MoveUser(address="BJ", effective_at=HALF_PAST)).then_no("same-address")


def test_the_address_is_that_of_the_latest_move_however_late_others_are_announced() -> None:
    user = USER.state_after([REGISTERED, moved("SH", LATER), moved("GZ", HALF_PAST)])

    assert user.address == "SH"
    assert user.address_at(HALF_PAST) == "GZ"
    assert user.address_at(WINTER) == "BJ"


def test_credit_is_reserved() -> None:
    given(USER, REGISTERED).when(reserve(FIRST, "5388.88")).then(reserved(FIRST, "5388.88"))


def test_a_reservation_lowers_the_available_credit() -> None:
    user = USER.state_after([REGISTERED, reserved(FIRST, "5388.88")])

    assert user.reserved_credit == Decimal("5388.88")
    assert user.available_credit == Decimal("4611.12")


def test_credit_beyond_the_limit_is_refused() -> None:
    given(USER, REGISTERED, reserved(FIRST, "5388.88")).when(reserve(SECOND, "4888.88")).then(
        refused(SECOND, "4888.88", "insufficient-credit")
    )


def test_the_limit_itself_can_be_reserved_to_the_cent() -> None:
    past = (REGISTERED, reserved(FIRST, "5388.88"))

    given(USER, *past).when(reserve(SECOND, "4611.12")).then(reserved(SECOND, "4611.12"))
    given(USER, *past).when(reserve(SECOND, "4611.13")).then(
        refused(SECOND, "4611.13", "insufficient-credit")
    )


def test_a_stranger_has_no_credit() -> None:
    given(USER).when(reserve(FIRST, "0.01")).then(refused(FIRST, "0.01", "unknown-user"))


def test_a_repeated_reservation_stays_quiet() -> None:
    given(USER, REGISTERED, reserved(FIRST, "1.00")).when(reserve(FIRST, "1.00")).then()


def test_credit_is_released_whole() -> None:
    past: list[UserEvent] = [REGISTERED, reserved(FIRST, "5388.88")]

    given(USER, *past).when(ReleaseCredit(order_id=FIRST)).then(released(FIRST, "5388.88"))
    assert USER.state_after([*past, released(FIRST, "5388.88")]).available_credit == Decimal(
        "10000.00"
    )


def test_what_was_not_reserved_is_not_paid_back() -> None:
    """Trap T12."""
    past = (REGISTERED, refused(FIRST, "99999.00", "insufficient-credit"))

    given(USER, *past).when(ReleaseCredit(order_id=FIRST)).then()
    given(USER).when(ReleaseCredit(order_id=FIRST)).then()


def test_a_repeated_release_stays_quiet() -> None:
    past = (REGISTERED, reserved(FIRST, "1.00"), released(FIRST, "1.00"))

    given(USER, *past).when(ReleaseCredit(order_id=FIRST)).then()
