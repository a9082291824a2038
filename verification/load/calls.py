"""Actions as HTTP requests, with the ids that the services assigned to numbers."""

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
from verification.load.ids import ResourceIds


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A POST to one process."""

    process: str
    path: str
    body: Json


async def create_call(request: Request, ids: ResourceIds) -> Call:
    """The call for a request, as soon as all resources that it refers to have ids.

    Raises:
        Unanswered: one of them has no id, and will not get one.
    """
    match request:
        case RegisterUser():
            return call_users("", create_registration(request))
        case MoveUser():
            body = {"address": request.address, "effective_at": rfc3339(request.effective_at)}
            return call_users(f"/{await ids.users.get(request.user)}/moves", body)
        case ListItem():
            return call_items("", create_listing(request))
        case RepriceItem():
            body = {"price": request.price, "effective_at": rfc3339(request.effective_at)}
            return call_items(f"/{await ids.items.get(request.item)}/price-changes", body)
        case CorrectOrigin():
            body = {"origin": request.origin, "effective_at": rfc3339(request.effective_at)}
            return call_items(f"/{await ids.items.get(request.item)}/origin-corrections", body)
        case PlaceOrder():
            return call_orders("", await create_placement(request, ids))
        case CancelOrder():
            body = {"reason": "changed-my-mind"}
            return call_orders(f"/{await ids.orders.get(request.order)}/cancel", body)
        case _:
            assert_never(request)


def call_users(path: str, body: Json) -> Call:
    return Call(process="users-api", path=f"/v1/users{path}", body=body)


def call_items(path: str, body: Json) -> Call:
    return Call(process="orders-api", path=f"/v1/items{path}", body=body)


def call_orders(path: str, body: Json) -> Call:
    return Call(process="orders-api", path=f"/v1/orders{path}", body=body)


def create_registration(user: RegisterUser) -> Json:
    return {
        "name": f"user {user.user}",
        "address": user.address,
        "gender": user.gender,
        "credit_limit": user.credit_limit,
        "effective_at": rfc3339(user.effective_at),
    }


def create_listing(item: ListItem) -> Json:
    return {
        "name": f"item {item.item}",
        "type": item.type,
        "origin": item.origin,
        "price": item.price,
        "effective_at": rfc3339(item.effective_at),
    }


async def create_placement(order: PlaceOrder, ids: ResourceIds) -> Json:
    return {
        "user_id": await ids.users.get(order.user),
        "lines": [
            {"item_id": await ids.items.get(item), "quantity": quantity}
            for item, quantity in order.lines
        ],
        "ordered_at": rfc3339(order.ordered_at),
    }
