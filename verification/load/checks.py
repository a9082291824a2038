"""What single answers must have been, whatever the totals are. Each check gives what is wrong."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal

from test_support.system.clients import Json
from verification.load.actions import (
    NAMES,
    ListItem,
    MoveUser,
    PlaceOrder,
    RegisterUser,
    RepriceItem,
)
from verification.load.driver import Run
from verification.load.expected import Ledger
from verification.load.ledger import accepted, line_of

BUSINESS = {"same-address", "same-price", "same-origin", "already-cancelled", "rejected"}
"""Refusals that happen in a town."""


def answers_wrong(run: Run) -> Iterator[str]:
    """Requests without an answer, odd refusals, repeats that were answered otherwise."""
    for outcome in run.outcomes:
        planned, answer = outcome.planned, outcome.answer
        what = f"number {planned.number}, {NAMES[type(planned.action)]}"
        if answer is None:
            yield f"{what}: had no answer"
        elif not answer.is_accepted and answer.code not in BUSINESS:
            yield f"{what}: refused with {answer.status} {answer.body}"
        elif outcome.alike is False:
            yield f"{what}: answered otherwise than its original: {answer.body}"


def prices_wrong(run: Run) -> Iterator[str]:
    """Orders that do not hold what was asked for, at prices that their items had."""
    prices: dict[str, set[Decimal]] = defaultdict(set)
    for action, answer in accepted(run):
        if isinstance(action, ListItem | RepriceItem):
            prices[answer.body["item_id"]].add(Decimal(action.price))
    for action, answer in accepted(run):
        if isinstance(action, PlaceOrder):
            lines = [line_of(line) for line in answer.body["lines"]]
            amount = sum((line.quantity * line.unit_price for line in lines), Decimal(0))
            asked = [quantity for _, quantity in action.lines]
            if asked != [line.quantity for line in lines]:
                yield f"order {answer.body['order_id']}: other quantities than {asked}"
            if any(line.unit_price not in prices[line.item_id] for line in lines):
                yield f"order {answer.body['order_id']}: a price that its item never had"
            if Decimal(answer.body["amount"]) != amount:
                yield f"order {answer.body['order_id']}: its lines are worth {amount}"


def limits_wrong(run: Run) -> Iterator[str]:
    """Moments at which a user had more reserved than their limit."""
    for action, answer in accepted(run):
        if isinstance(action, RegisterUser | MoveUser):
            reserved, limit = answer.body["reserved_credit"], answer.body["credit_limit"]
            if Decimal(reserved) > Decimal(limit):
                yield f"user {answer.body['user_id']}: {reserved} reserved of {limit}"


def rejections_wrong(
    ledger: Ledger, ended: Mapping[str, Json], limits: Mapping[str, Decimal]
) -> Iterator[str]:
    """Orders rejected though all that their user ever ordered is within the limit."""
    ordered: dict[str, Decimal] = defaultdict(Decimal)
    for order in ledger.orders:
        ordered[order.user_id] += order.amount
    for order in ledger.orders:
        reason = ended.get(order.order_id, {}).get("reason")
        if order.status == "rejected" and reason == "insufficient-credit":
            if ordered[order.user_id] <= limits[order.user_id]:
                yield f"order {order.order_id}: rejected, though there was credit"
        elif order.status == "rejected" and reason != "timed-out":
            yield f"order {order.order_id}: rejected for {reason}"
