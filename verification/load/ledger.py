"""The answers of a run as a ledger, the orders with the status in which they ended."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from test_support.system.clients import Json
from verification.load.actions import (
    CancelOrder,
    CorrectOrigin,
    ListItem,
    MoveUser,
    PlaceOrder,
    RegisterUser,
    Request,
)
from verification.load.driver import Run
from verification.load.expected import Ledger, Line, Order, Since
from verification.load.sender import Answer

VERSION_CANCELLED_CONFIRMED = 3
"""Placed, confirmed, cancelled; one that was not confirmed is cancelled in its second event."""


def ledger_of(run: Run, ended: Mapping[str, Json], late_before: datetime) -> Ledger:
    """`ended` has the orders as orders-svc lists them at the end, by their id."""
    addresses: dict[str, list[Since]] = defaultdict(list)
    origins: dict[str, list[Since]] = defaultdict(list)
    genders, types = {}, {}
    for action, answer in accepted(run):
        body = answer.body
        match action:
            case RegisterUser() | MoveUser():
                genders[body["user_id"]] = body["gender"]
                addresses[body["user_id"]].append(since(action, action.address, answer))
            case ListItem() | CorrectOrigin():
                types[body["item_id"]] = body["type"]
                origins[body["item_id"]].append(since(action, action.origin, answer))
    return Ledger(
        addresses=addresses,
        genders=genders,
        origins=origins,
        types=types,
        orders=orders_of(run, ended),
        late_before=late_before,
    )


def accepted(run: Run) -> Iterator[tuple[Request, Answer]]:
    """What was accepted, each once: a repeat changes nothing."""
    for outcome in run.outcomes:
        action, answer = outcome.planned.action, outcome.answer
        if isinstance(action, Request) and answer is not None and answer.is_accepted:
            yield action, answer


def since(
    action: RegisterUser | MoveUser | ListItem | CorrectOrigin, value: str, answer: Answer
) -> Since:
    assert answer.version is not None
    return Since(effective_at=action.effective_at, version=answer.version, value=value)


def orders_of(run: Run, ended: Mapping[str, Json]) -> list[Order]:
    """A cancellation that was accepted is believed at once; the list may lag behind."""
    cancelled = {
        answer.body["order_id"]: answer.version
        for action, answer in accepted(run)
        if isinstance(action, CancelOrder)
    }
    return [
        order_of(action, answer.body, cancelled, ended)
        for action, answer in accepted(run)
        if isinstance(action, PlaceOrder)
    ]


def order_of(
    action: PlaceOrder,
    body: Json,
    cancelled: Mapping[str, int | None],
    ended: Mapping[str, Json],
) -> Order:
    order_id = body["order_id"]
    is_cancelled = order_id in cancelled
    status = "cancelled" if is_cancelled else ended.get(order_id, body)["status"]
    return Order(
        order_id=order_id,
        user_id=body["user_id"],
        lines=tuple(line_of(line) for line in body["lines"]),
        ordered_at=action.ordered_at,
        status=status,
        was_confirmed=(
            cancelled[order_id] == VERSION_CANCELLED_CONFIRMED
            if is_cancelled
            else status == "confirmed"
        ),
    )


def line_of(line: Any) -> Line:
    return Line(
        item_id=line["item_id"],
        quantity=line["quantity"],
        unit_price=Decimal(line["unit_price"]),
    )
