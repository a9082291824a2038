"""Actions as HTTP requests, by the ids that the services gave to numbers."""

from dataclasses import dataclass
from typing import assert_never

from test_support.system.clients import Json, rfc3339
from verification.load.actions import (
    CancelOrder,
    CorrectOrigin,
    ListItem,
    MoveUser,
    PlaceOrder,
    RegisterUser,
    RepriceItem,
    Request,
)
from verification.load.names import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A POST to one process."""

    process: str
    path: str
    body: Json


async def call_of(request: Request, names: Names) -> Call:
    """The call for a request, as soon as all that it is about has an id.

    Raises:
        Unanswered: something has none, and will not get one.
    """
    match request:
        case RegisterUser():
            return to_users("", registration(request))
        case MoveUser():
            body = {"address": request.address, "effective_at": rfc3339(request.effective_at)}
            return to_users(f"/{await names.users.id_of(request.user)}/moves", body)
        case ListItem():
            return to_items("", listing(request))
        case RepriceItem():
            body = {"price": request.price, "effective_at": rfc3339(request.effective_at)}
            return to_items(f"/{await names.items.id_of(request.item)}/price-changes", body)
        case CorrectOrigin():
            body = {"origin": request.origin, "effective_at": rfc3339(request.effective_at)}
            return to_items(f"/{await names.items.id_of(request.item)}/origin-corrections", body)
        case PlaceOrder():
            return to_orders("", await placement(request, names))
        case CancelOrder():
            body = {"reason": "changed my mind"}
            return to_orders(f"/{await names.orders.id_of(request.order)}/cancel", body)
        case _:
            assert_never(request)


def to_users(path: str, body: Json) -> Call:
    return Call(process="users-api", path=f"/v1/users{path}", body=body)


def to_items(path: str, body: Json) -> Call:
    return Call(process="orders-api", path=f"/v1/items{path}", body=body)


def to_orders(path: str, body: Json) -> Call:
    return Call(process="orders-api", path=f"/v1/orders{path}", body=body)


def registration(user: RegisterUser) -> Json:
    return {
        "name": f"user {user.user}",
        "address": user.address,
        "gender": user.gender,
        "credit_limit": user.credit_limit,
        "effective_at": rfc3339(user.effective_at),
    }


def listing(item: ListItem) -> Json:
    return {
        "name": f"item {item.item}",
        "type": item.type,
        "origin": item.origin,
        "price": item.price,
        "effective_at": rfc3339(item.effective_at),
    }


async def placement(order: PlaceOrder, names: Names) -> Json:
    return {
        "user_id": await names.users.id_of(order.user),
        "lines": [
            {"item_id": await names.items.id_of(item), "quantity": quantity}
            for item, quantity in order.lines
        ],
        "ordered_at": rfc3339(order.ordered_at),
    }
