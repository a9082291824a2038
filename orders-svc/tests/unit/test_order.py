"""Each command to an order: its events, a refusal, or no event."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from orders_svc.order.commands import (
    CancelOrder,
    ConfirmOrder,
    OrderCommand,
    PlaceOrder,
    RejectOrder,
)
from orders_svc.order.events import (
    OrderCancelled,
    OrderConfirmed,
    OrderEvent,
    OrderLine,
    OrderPlaced,
    OrderRejected,
)
from orders_svc.order.order import AHEAD_MAX, ORDER
from shared.eventsourcing.decider import ImpossibleHistory
from shared.eventsourcing.testing import given

ORDERED_AT = datetime(2016, 11, 11, 0, 0, 1, tzinfo=UTC)
LINES = (
    OrderLine(item_id=UUID(int=3), quantity=3, unit_price=Decimal("5388.88")),
    OrderLine(item_id=UUID(int=4), quantity=1, unit_price=Decimal("0.02")),
)
AMOUNT = Decimal("16166.66")

PLACED = OrderPlaced(
    order_id=UUID(int=1), user_id=UUID(int=2), lines=LINES, amount=AMOUNT, ordered_at=ORDERED_AT
)
CONFIRMED = OrderConfirmed(
    order_id=UUID(int=1), user_id=UUID(int=2), lines=LINES, amount=AMOUNT, ordered_at=ORDERED_AT
)
REJECTED = OrderRejected(order_id=UUID(int=1), user_id=UUID(int=2), reason="insufficient-credit")


def cancelled(*, was_confirmed: bool) -> OrderCancelled:
    return OrderCancelled(
        order_id=UUID(int=1),
        user_id=UUID(int=2),
        lines=LINES,
        amount=AMOUNT,
        ordered_at=ORDERED_AT,
        was_confirmed=was_confirmed,
        reason="changed-my-mind",
    )


CONFIRM = ConfirmOrder(confirmed_at=ORDERED_AT)
CANCEL = CancelOrder(reason="changed-my-mind")
REJECT = RejectOrder(reason="insufficient-credit")


def test_an_order_is_placed_with_the_exact_sum_of_its_lines() -> None:
    command = PlaceOrder(
        order_id=UUID(int=1), user_id=UUID(int=2), lines=LINES, ordered_at=ORDERED_AT
    )

    given(ORDER).when(command).then(PLACED)


def test_a_pending_order_is_confirmed_with_all_it_holds() -> None:
    given(ORDER, PLACED).when(CONFIRM).then(CONFIRMED)


def test_an_order_from_the_future_is_rejected_as_it_would_not_be_counted() -> None:
    """The clock that accepted it is wrong."""
    just, beyond = (
        ConfirmOrder(confirmed_at=ORDERED_AT - AHEAD_MAX - more)
        for more in (timedelta(), timedelta(milliseconds=1))
    )
    rejected = replace(REJECTED, reason="ordered-in-the-future")

    given(ORDER, PLACED).when(just).then(CONFIRMED)
    given(ORDER, PLACED).when(beyond).then(rejected)


def test_a_pending_order_is_rejected() -> None:
    given(ORDER, PLACED).when(REJECT).then(REJECTED)


@pytest.mark.parametrize("command", [CONFIRM, REJECT])
@pytest.mark.parametrize("closing", [CONFIRMED, REJECTED, cancelled(was_confirmed=False)])
def test_a_late_credit_decision_has_no_event(command: OrderCommand, closing: OrderEvent) -> None:
    given(ORDER, PLACED, closing).when(command).then()


def test_a_pending_order_is_cancelled() -> None:
    given(ORDER, PLACED).when(CANCEL).then(cancelled(was_confirmed=False))


def test_a_confirmed_order_is_cancelled_with_was_confirmed() -> None:
    given(ORDER, PLACED, CONFIRMED).when(CANCEL).then(cancelled(was_confirmed=True))


def test_an_order_is_cancelled_once() -> None:
    given(ORDER, PLACED, cancelled(was_confirmed=False)).when(CANCEL).then_no("already-cancelled")


def test_a_rejected_order_cannot_be_cancelled() -> None:
    given(ORDER, PLACED, REJECTED).when(CANCEL).then_no("rejected")


@pytest.mark.parametrize("command", [CONFIRM, REJECT, CANCEL])
def test_commands_to_an_unknown_order_are_refused(command: OrderCommand) -> None:
    given(ORDER).when(command).then_no("unknown-order")


@pytest.mark.parametrize(
    "history",
    [
        [CONFIRMED],
        [REJECTED],
        [cancelled(was_confirmed=False)],
        [PLACED, PLACED],
        [PLACED, CONFIRMED, CONFIRMED],
        [PLACED, CONFIRMED, REJECTED],
        [PLACED, cancelled(was_confirmed=True)],
        [PLACED, REJECTED, cancelled(was_confirmed=False)],
    ],
    ids=lambda history: " ".join(type(event).__name__ for event in history),
)
def test_a_history_that_no_command_can_lead_to_is_refused(history: Sequence[OrderEvent]) -> None:
    with pytest.raises(ImpossibleHistory):
        ORDER.state_after(history)
