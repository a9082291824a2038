"""Checks of single responses, independent of the totals. Each yields a line for each fault."""

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
from verification.load.ledger import find_accepted, parse_line

BUSINESS = {"same-address", "same-price", "same-origin", "already-cancelled", "rejected"}
"""Refusals that are part of normal business."""


def check_responses(run: Run) -> Iterator[str]:
    """Requests without a response, unexpected refusals, repeats with another response."""
    for outcome in run.outcomes:
        planned, response = outcome.planned, outcome.response
        what = f"number {planned.number}, {NAMES[type(planned.action)]}"
        if response is None:
            yield f"{what}: had no response"
        elif not response.is_accepted and response.code not in BUSINESS:
            yield f"{what}: refused with {response.status} {response.body}"
        elif outcome.alike is False:
            yield f"{what}: answered differently from its original: {response.body}"


def check_prices(run: Run) -> Iterator[str]:
    """Orders whose quantities, prices or amount differ from the request and its items."""
    prices: dict[str, set[Decimal]] = defaultdict(set)
    for action, response in find_accepted(run):
        if isinstance(action, ListItem | RepriceItem):
            prices[response.body["item_id"]].add(Decimal(action.price))
    for action, response in find_accepted(run):
        if isinstance(action, PlaceOrder):
            lines = [parse_line(line) for line in response.body["lines"]]
            amount = sum((line.quantity * line.unit_price for line in lines), Decimal(0))
            asked = [quantity for _, quantity in action.lines]
            if asked != [line.quantity for line in lines]:
                yield f"order {response.body['order_id']}: other quantities than {asked}"
            if any(line.unit_price not in prices[line.item_id] for line in lines):
                yield f"order {response.body['order_id']}: a price that its item never had"
            if Decimal(response.body["amount"]) != amount:
                yield f"order {response.body['order_id']}: its lines are worth {amount}"


def check_limits(run: Run) -> Iterator[str]:
    """Moments at which a user had more reserved than their limit."""
    for action, response in find_accepted(run):
        if isinstance(action, RegisterUser | MoveUser):
            reserved, limit = response.body["reserved_credit"], response.body["credit_limit"]
            if Decimal(reserved) > Decimal(limit):
                yield f"user {response.body['user_id']}: {reserved} reserved of {limit}"


def check_rejections(
    ledger: Ledger, ended: Mapping[str, Json], limits: Mapping[str, Decimal]
) -> Iterator[str]:
    """Orders rejected although all orders of their user together are within the limit."""
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
