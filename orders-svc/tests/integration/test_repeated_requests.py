"""A repeated request gets the stored response, also if it overtakes the first one on its way."""

from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

import httpx
import pytest

import orders_svc.item.api
import orders_svc.order.api
from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from orders_svc.bootstrap import Resources
from shared.runtime.identifiers import new_id
from test_support.repeats import (
    Prepare,
    RepeatedRequests,
    WriteRequest,
    assert_same_success,
    send_copy_after_look_up,
)

IPHONE: dict[str, Any] = {"name": "iphone", "type": "phone", "origin": "bj", "price": "5388.88"}
FIRST_VERSION = {"If-Match": '"1"'}
REASON = {"reason": "changed-my-mind"}
CANCEL = "POST /v1/orders/{order_id}/cancel"


async def list_iphone(client: httpx.AsyncClient) -> str:
    """The address of a new item."""
    location: str = (await client.post("/v1/items", json=IPHONE)).headers["Location"]
    return location


async def list_item(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    return WriteRequest(route="POST /v1/items", path="/v1/items", json=IPHONE)


async def reprice(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    iphone = await list_iphone(client)
    return WriteRequest(
        route="POST /v1/items/{item_id}/price-changes",
        path=f"{iphone}/price-changes",
        json={"price": "1.00"},
    )


async def correct_origin(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    iphone = await list_iphone(client)
    return WriteRequest(
        route="POST /v1/items/{item_id}/origin-corrections",
        path=f"{iphone}/origin-corrections",
        json={"origin": "SH"},
    )


async def delist(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    return WriteRequest(route="DELETE /v1/items/{item_id}", path=await list_iphone(client))


async def place(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    item_id = (await list_iphone(client)).rpartition("/")[2]
    order = {"user_id": str(new_id()), "lines": [{"item_id": item_id, "quantity": 1}]}
    return WriteRequest(route="POST /v1/orders", path="/v1/orders", json=order)


async def cancel(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    order = await (await place(client, issuing)).send(client, str(new_id()))
    return WriteRequest(route=CANCEL, path=f"{order.headers['Location']}/cancel", json=REASON)


async def cancel_if_unchanged(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    request = await cancel(client, issuing)
    return WriteRequest(route=CANCEL, path=request.path, json=REASON, headers=FIRST_VERSION)


async def cancel_ones_own(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    order = await (await place(client, issuing)).send(client, str(new_id()))
    headers = bearer(issuing, "user", order.json()["user_id"])
    path = f"{order.headers['Location']}/cancel"
    return WriteRequest(route=CANCEL, path=path, json=REASON, headers=headers)


REQUESTS: Sequence[Prepare] = (
    list_item,
    reprice,
    correct_origin,
    delist,
    place,
    cancel,
    cancel_if_unchanged,
    cancel_ones_own,
)


class TestItemsAndOrders(RepeatedRequests):
    routers = (orders_svc.item.api.router, orders_svc.order.api.router)
    requests = REQUESTS
    refused: ClassVar = {
        reprice: 409,
        correct_origin: 409,
        delist: 409,
        cancel: 409,
        cancel_if_unchanged: 412,
        cancel_ones_own: 409,
    }


async def test_a_repeated_order_is_not_refused_because_its_item_was_delisted_meanwhile(
    client: httpx.AsyncClient,
    issuing: RunFolder,
    resources: Resources,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is read before the decision has changed since the first copy was recorded."""
    request = await place(client, issuing)
    [line] = request.json["lines"]

    async def delist_item() -> None:
        await client.delete(f"/v1/items/{line['item_id']}")
        resources.item_cache.forget([UUID(line["item_id"])])

    first, second = await send_copy_after_look_up(client, request, monkeypatch, then=delist_item)

    assert_same_success(first, second)
