"""The responses of a run as a ledger; orders have the status in which they ended."""

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
from verification.load.sender import Response

VERSION_CANCELLED_CONFIRMED = 3
"""Placed, confirmed, cancelled; one that was not confirmed is cancelled in its second event."""


def create_ledger(run: Run, ended: Mapping[str, Json], late_before: datetime) -> Ledger:
    """`ended`: the orders as orders-svc lists them at the end, by id."""
    addresses: dict[str, list[Since]] = defaultdict(list)
    origins: dict[str, list[Since]] = defaultdict(list)
    genders, types = {}, {}
    for action, response in find_accepted(run):
        body = response.body
        match action:
            case RegisterUser() | MoveUser():
                genders[body["user_id"]] = body["gender"]
                addresses[body["user_id"]].append(create_since(action, action.address, response))
            case ListItem() | CorrectOrigin():
                types[body["item_id"]] = body["type"]
                origins[body["item_id"]].append(create_since(action, action.origin, response))
    return Ledger(
        addresses=addresses,
        genders=genders,
        origins=origins,
        types=types,
        orders=create_orders(run, ended),
        late_before=late_before,
    )


def find_accepted(run: Run) -> Iterator[tuple[Request, Response]]:
    """Accepted requests with their responses, each once: a repeat changes nothing."""
    for outcome in run.outcomes:
        action, response = outcome.planned.action, outcome.response
        if isinstance(action, Request) and response is not None and response.is_accepted:
            yield action, response


def create_since(
    action: RegisterUser | MoveUser | ListItem | CorrectOrigin, value: str, response: Response
) -> Since:
    assert response.version is not None
    return Since(effective_at=action.effective_at, version=response.version, value=value)


def create_orders(run: Run, ended: Mapping[str, Json]) -> list[Order]:
    """An accepted cancellation counts at once; the list can lag behind."""
    cancelled = {
        response.body["order_id"]: response.version
        for action, response in find_accepted(run)
        if isinstance(action, CancelOrder)
    }
    return [
        create_order(action, response.body, cancelled, ended)
        for action, response in find_accepted(run)
        if isinstance(action, PlaceOrder)
    ]


def create_order(
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
        lines=tuple(parse_line(line) for line in body["lines"]),
        ordered_at=action.ordered_at,
        status=status,
        was_confirmed=(
            cancelled[order_id] == VERSION_CANCELLED_CONFIRMED
            if is_cancelled
            else status == "confirmed"
        ),
    )


def parse_line(line: Any) -> Line:
    return Line(
        item_id=line["item_id"],
        quantity=line["quantity"],
        unit_price=Decimal(line["unit_price"]),
    )
