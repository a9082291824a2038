"""Each command to a user: its events, a refusal, or no event."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from shared.eventsourcing.decider import ImpossibleHistory
from shared.eventsourcing.testing import given
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
from users_svc.user import USER, Registered, require_active

JACK = UUID(int=1)
FIRST, SECOND = UUID(int=11), UUID(int=12)
WINTER = datetime(2015, 12, 11, tzinfo=UTC)
HALF_PAST = datetime(2016, 11, 11, 0, 30, tzinfo=UTC)
LATER = datetime(2016, 11, 11, 2, tzinfo=UTC)

REGISTERED = UserRegistered(
    user_id=JACK,
    personal_data="sealed",
    address="BJ",
    gender="male",
    credit_limit=Decimal("10000.00"),
    effective_at=WINTER,
)

REGISTER = RegisterUser(
    user_id=JACK,
    personal_data="sealed",
    address="BJ",
    gender="male",
    credit_limit=Decimal("10000.00"),
    effective_at=WINTER,
)

DELETED = UserDeleted(user_id=JACK, effective_at=LATER)


def moved(address: str, at: datetime) -> UserMoved:
    return UserMoved(user_id=JACK, address=address, gender="male", effective_at=at)


def reserve(order: UUID, amount: str) -> ReserveCredit:
    return ReserveCredit(user_id=JACK, order_id=order, amount=Decimal(amount))


def release(order: UUID, _amount: str) -> ReleaseCredit:
    """All of the order's credit."""
    return ReleaseCredit(order_id=order)


def reserved(order: UUID, amount: str) -> CreditReserved:
    return CreditReserved(user_id=JACK, order_id=order, amount=Decimal(amount))


def refused(order: UUID, amount: str, reason: str) -> CreditRefused:
    return CreditRefused(user_id=JACK, order_id=order, amount=Decimal(amount), reason=reason)


def delete(*confirmed: UUID, ordered_at: datetime = HALF_PAST) -> DeleteUser:
    return DeleteUser(confirmed_orders=dict.fromkeys(confirmed, ordered_at), effective_at=LATER)


def limit_changed(amount: str) -> UserCreditLimitChanged:
    return UserCreditLimitChanged(user_id=JACK, credit_limit=Decimal(amount))


def released(order: UUID, amount: str) -> CreditReleased:
    return CreditReleased(user_id=JACK, order_id=order, amount=Decimal(amount))


def registered_after(events: Sequence[UserEvent]) -> Registered:
    return require_active(USER.state_after(events))


def test_a_user_is_registered() -> None:
    given(USER).when(REGISTER).then(REGISTERED)


def test_a_user_cannot_register_twice() -> None:
    given(USER, REGISTERED).when(REGISTER).then_no("already-registered")
    given(USER, REGISTERED, DELETED).when(REGISTER).then_no("already-registered")


def test_a_user_moves() -> None:
    given(USER, REGISTERED).when(MoveUser(address="SH", effective_at=HALF_PAST)).then(
        moved("SH", HALF_PAST)
    )


def test_an_unknown_user_cannot_move() -> None:
    given(USER).when(MoveUser(address="SH", effective_at=HALF_PAST)).then_no("unknown-user")


def test_a_move_to_the_present_address_is_refused() -> None:
    given(USER, REGISTERED).when(MoveUser(address="BJ", effective_at=HALF_PAST)).then_no(
        "same-address"
    )


def test_a_move_announced_late_is_judged_by_its_own_time() -> None:
    """Jack lives in SH since 02:00; a move to SH at 00:30, when he lived in BJ, is a change."""
    past = (REGISTERED, moved("SH", LATER))

    given(USER, *past).when(MoveUser(address="SH", effective_at=HALF_PAST)).then(
        moved("SH", HALF_PAST)
    )
    given(USER, *past).when(MoveUser(address="BJ", effective_at=HALF_PAST)).then_no("same-address")


def test_the_address_is_that_of_the_latest_move_however_late_others_are_announced() -> None:
    user = registered_after([REGISTERED, moved("SH", LATER), moved("GZ", HALF_PAST)])

    assert user.address == "SH"
    assert user.addresses.at(HALF_PAST) == "GZ"
    assert user.addresses.at(WINTER) == "BJ"


def test_of_two_moves_in_a_millisecond_the_last_announced_one_holds() -> None:
    first, second = (HALF_PAST + timedelta(microseconds=finer) for finer in (900, 100))
    user = registered_after([REGISTERED, moved("SH", first), moved("GZ", second)])

    assert user.address == user.addresses.at(HALF_PAST) == "GZ"


def test_credit_is_reserved() -> None:
    given(USER, REGISTERED).when(reserve(FIRST, "5388.88")).then(reserved(FIRST, "5388.88"))


def test_a_reservation_lowers_the_available_credit() -> None:
    user = registered_after([REGISTERED, reserved(FIRST, "5388.88")])

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


def test_a_user_has_a_maximum_of_open_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed order is not open, and neither is one that was refused."""
    monkeypatch.setattr("users_svc.user.OPEN_ORDERS_MAX", 2)
    third, fourth = UUID(int=13), UUID(int=14)
    past = (REGISTERED, reserved(FIRST, "1.00"), reserved(SECOND, "1.00"))
    refusal = refused(third, "1.00", "too-many-open-orders")

    given(USER, *past).when(reserve(third, "1.00")).then(refusal)
    given(USER, *past).when(reserve(SECOND, "1.00")).then()
    given(USER, *past, refusal, released(FIRST, "1.00")).when(reserve(fourth, "1.00")).then(
        reserved(fourth, "1.00")
    )


def test_a_user_moves_a_maximum_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the moves are effective; what leaves the state as it is adds none."""
    monkeypatch.setattr("shared.eventsourcing.timeline.CHANGES_MAX", 2)
    past = (REGISTERED, moved("SH", HALF_PAST), moved("GZ", HALF_PAST))

    given(USER, *past[:2]).when(MoveUser(address="GZ", effective_at=HALF_PAST)).then(past[2])
    for at in (WINTER, HALF_PAST, LATER):
        given(USER, *past).when(MoveUser(address="HZ", effective_at=at)).then_no("too-many-moves")
    given(USER, *past).when(MoveUser(address="GZ", effective_at=LATER)).then_no("same-address")


def test_refused_and_closed_orders_leave_nothing_in_the_state() -> None:
    orders = [UUID(int=number) for number in range(100, 200)]
    past = [
        event
        for each in orders
        for event in (
            refused(each, "9.00", "insufficient-credit"),
            reserved(each, "1.00"),
            released(each, "1.00"),
        )
    ]

    assert registered_after([REGISTERED, *past]) == registered_after([REGISTERED])


def test_an_unknown_user_has_no_credit() -> None:
    given(USER).when(reserve(FIRST, "0.01")).then(refused(FIRST, "0.01", "unknown-user"))


def test_a_repeated_reservation_has_no_event() -> None:
    given(USER, REGISTERED, reserved(FIRST, "1.00")).when(reserve(FIRST, "1.00")).then()


def test_credit_is_released_whole() -> None:
    past: list[UserEvent] = [REGISTERED, reserved(FIRST, "5388.88")]

    given(USER, *past).when(ReleaseCredit(order_id=FIRST)).then(released(FIRST, "5388.88"))
    user = registered_after([*past, released(FIRST, "5388.88")])
    assert user.available_credit == Decimal("10000.00")


def test_credit_that_was_not_reserved_is_not_released() -> None:
    """Trap T12."""
    past = (REGISTERED, refused(FIRST, "99999.00", "insufficient-credit"))

    given(USER, *past).when(ReleaseCredit(order_id=FIRST)).then()
    given(USER).when(ReleaseCredit(order_id=FIRST)).then()


def test_a_repeated_release_has_no_event() -> None:
    past = (REGISTERED, reserved(FIRST, "1.00"), released(FIRST, "1.00"))

    given(USER, *past).when(ReleaseCredit(order_id=FIRST)).then()


def test_the_credit_limit_is_changed() -> None:
    command = ChangeCreditLimit(credit_limit=Decimal("20000.00"))

    given(USER, REGISTERED).when(command).then(limit_changed("20000.00"))
    user = registered_after([REGISTERED, limit_changed("20000.00")])
    assert user.available_credit == Decimal("20000.00")


def test_the_same_limit_has_no_event() -> None:
    given(USER, REGISTERED).when(ChangeCreditLimit(credit_limit=Decimal("10000"))).then()


def test_a_limit_can_be_lowered_to_the_reserved_credit_and_not_below() -> None:
    past = (REGISTERED, reserved(FIRST, "5388.88"))

    given(USER, *past).when(ChangeCreditLimit(credit_limit=Decimal("5388.88"))).then(
        limit_changed("5388.88")
    )
    given(USER, *past).when(ChangeCreditLimit(credit_limit=Decimal("5388.87"))).then_no(
        "limit-below-reserved"
    )


def test_a_user_without_orders_is_deleted() -> None:
    given(USER, REGISTERED).when(delete()).then(DELETED)


def test_a_user_whose_orders_are_all_confirmed_is_deleted() -> None:
    given(USER, REGISTERED, reserved(FIRST, "1.00")).when(delete(FIRST)).then(DELETED)


def test_a_deletion_is_effective_after_the_latest_confirmed_order() -> None:
    """In milliseconds, as orders are counted: a user who is deleted at an instant lives nowhere."""
    ahead = LATER + timedelta(minutes=5)
    past = (REGISTERED, reserved(FIRST, "1.00"), reserved(SECOND, "1.00"))

    given(USER, *past).when(delete(FIRST, SECOND, ordered_at=ahead)).then(
        UserDeleted(user_id=JACK, effective_at=ahead + timedelta(milliseconds=1))
    )
    given(USER, *past).when(delete(FIRST, SECOND, ordered_at=LATER)).then(
        UserDeleted(user_id=JACK, effective_at=LATER + timedelta(milliseconds=1))
    )


def test_a_user_with_an_undecided_order_is_not_deleted() -> None:
    past = (REGISTERED, reserved(FIRST, "1.00"), reserved(SECOND, "1.00"))

    given(USER, *past).when(delete(FIRST)).then_no("has-pending-orders")
    given(USER, *past, released(SECOND, "1.00")).when(delete(FIRST)).then(DELETED)


@pytest.mark.parametrize(
    "command",
    [
        MoveUser(address="SH", effective_at=LATER),
        ChangeCreditLimit(credit_limit=Decimal(1)),
        delete(),
    ],
    ids=lambda command: type(command).__name__,
)
def test_commands_to_unknown_and_deleted_users_are_refused(command: UserCommand) -> None:
    given(USER).when(command).then_no("unknown-user")
    given(USER, REGISTERED, DELETED).when(command).then_no("user-deleted")


def test_a_deleted_user_has_no_credit() -> None:
    given(USER, REGISTERED, DELETED).when(reserve(FIRST, "0.01")).then(
        refused(FIRST, "0.01", "user-deleted")
    )


def test_an_order_that_is_cancelled_after_its_user_was_deleted_releases_its_credit() -> None:
    past = (REGISTERED, reserved(FIRST, "1.00"), DELETED)

    given(USER, *past).when(ReleaseCredit(order_id=FIRST)).then(released(FIRST, "1.00"))


@pytest.mark.parametrize(
    "history",
    [
        [moved("SH", LATER)],
        [limit_changed("1.00")],
        [reserved(FIRST, "1.00")],
        [released(FIRST, "1.00")],
        [DELETED],
        [REGISTERED, REGISTERED],
        [REGISTERED, DELETED, moved("SH", LATER)],
        [REGISTERED, DELETED, limit_changed("1.00")],
        [REGISTERED, DELETED, reserved(FIRST, "1.00")],
        [REGISTERED, DELETED, DELETED],
    ],
    ids=lambda history: " ".join(type(event).__name__ for event in history),
)
def test_a_history_that_no_command_can_lead_to_is_refused(history: Sequence[UserEvent]) -> None:
    with pytest.raises(ImpossibleHistory):
        USER.state_after(history)


@given_any(
    st.lists(
        st.tuples(
            st.sampled_from([reserve, release]),
            st.integers(1, 9),
            st.sampled_from(["1.00", "9.99"]),
        )
    )
)
def test_the_reserved_credit_is_the_sum_of_the_open_orders_and_within_the_limit(
    story: list[tuple[Callable[[UUID, str], UserCommand], int, str]],
) -> None:
    history: list[UserEvent] = [REGISTERED, limit_changed("30.00")]
    for command, order, amount in story:
        history += USER.decide(command(UUID(int=order), amount), USER.state_after(history))

    user = registered_after(history)
    assert user.reserved_credit == sum(user.reserved.values()) <= user.credit_limit
