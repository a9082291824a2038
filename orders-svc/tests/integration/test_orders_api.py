"""Orders over HTTP: responses and refusals."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid4

import httpx
import pytest

from orders_svc.bootstrap import Resources
from orders_svc.order.commands import CancelOrder, ConfirmOrder, OrderCommand, RejectOrder
from orders_svc.order.events import CancelReason
from orders_svc.order.order import ORDER
from shared.eventsourcing.handler import handle
from shared.messaging.messages import Metadata
from shared.runtime.identifiers import new_id

WAIT_SECONDS = 30


IPHONE: dict[str, Any] = {"name": "iphone", "type": "phone", "origin": "bj", "price": "5388.88"}


@pytest.fixture
async def iphone(client: httpx.AsyncClient) -> str:
    """The id of a listed item."""
    item_id: str = (await client.post("/v1/items", json=IPHONE)).json()["item_id"]
    return item_id


@pytest.fixture
async def order(client: httpx.AsyncClient, iphone: str) -> str:
    """The address of a placed order."""
    location: str = (await place(client, iphone)).headers["Location"]
    return location


async def place(client: httpx.AsyncClient, item_id: str, **more: object) -> httpx.Response:
    body = {"user_id": str(uuid4()), "lines": [{"item_id": item_id, "quantity": 3}]}
    return await client.post("/v1/orders", json=body | more)


async def decide(resources: Resources, order: str, command: OrderCommand) -> None:
    """What the worker does with a decision on the credit."""
    order_id = UUID(order.rpartition("/")[2])
    cause = Metadata(correlation_id=new_id(), causation_id=new_id())
    await handle(resources.orders, ORDER, order_id, command, metadata=cause)


async def test_an_order_is_placed_at_the_price_of_its_item(
    client: httpx.AsyncClient, iphone: str
) -> None:
    answer = await place(client, iphone, ordered_at="2016-11-11T00:00:01Z")

    order = answer.json()
    assert (answer.status_code, order["status"]) == (201, "pending")
    assert order["amount"] == "16166.64"
    assert order["lines"] == [{"item_id": iphone, "quantity": 3, "unit_price": "5388.88"}]
    assert order["ordered_at"] == "2016-11-11T00:00:01Z"


async def test_an_order_above_the_maximum_amount_is_refused(
    client: httpx.AsyncClient,
) -> None:
    dear = (await client.post("/v1/items", json=IPHONE | {"price": "9999999999.99"})).json()
    lines = [{"item_id": dear["item_id"], "quantity": 2}]

    answer = await place(client, dear["item_id"], lines=lines)

    assert (answer.status_code, answer.json()["code"]) == (422, "amount-too-large")


async def test_an_order_of_an_unknown_item_is_refused(client: httpx.AsyncClient) -> None:
    answer = await place(client, str(uuid4()))

    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-item")


@pytest.mark.parametrize(
    "wrong",
    [
        {"lines": []},
        {"lines": [{"item_id": str(uuid4()), "quantity": 0}]},
        {"lines": [{"item_id": str(uuid4()), "quantity": 1}] * 101},
        {"lines": [{"item_id": "no id", "quantity": 1}]},
        {"ordered_at": "2999-01-01T00:00:00Z"},
        {"user_id": "no id"},
    ],
    ids=["no line", "no quantity", "too many lines", "no item", "future", "no user"],
)
async def test_a_malformed_order_is_refused(
    client: httpx.AsyncClient, iphone: str, wrong: dict[str, object]
) -> None:
    answer = await place(client, iphone, **wrong)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "31"])
async def test_a_wait_has_bounds(client: httpx.AsyncClient, order: str, seconds: str) -> None:
    answer = await client.get(order, params={"wait": seconds})

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


async def test_a_wait_ends_as_soon_as_the_order_is_decided(
    client: httpx.AsyncClient, resources: Resources, order: str
) -> None:
    waiting = asyncio.create_task(client.get(order, params={"wait": WAIT_SECONDS}))
    await asyncio.sleep(0.1)
    assert not waiting.done()

    await decide(resources, order, ConfirmOrder(confirmed_at=datetime.now(UTC)))

    answer = await asyncio.wait_for(waiting, WAIT_SECONDS / 3)
    assert (answer.json()["status"], answer.headers["ETag"]) == ("confirmed", '"2"')


async def test_a_wait_is_bounded(client: httpx.AsyncClient, order: str) -> None:
    answer = await client.get(order, params={"wait": 0.1})

    assert (answer.status_code, answer.json()["status"]) == (200, "pending")


async def test_too_long_a_wait_is_refused(client: httpx.AsyncClient, order: str) -> None:
    assert (await client.get(order, params={"wait": 31})).status_code == 422


async def test_an_order_is_cancelled_once(client: httpx.AsyncClient, order: str) -> None:
    first = await client.post(f"{order}/cancel", json={"reason": "changed-my-mind"})
    second = await client.post(f"{order}/cancel", json={"reason": "changed-my-mind"})

    assert (first.status_code, first.json()["status"]) == (200, "cancelled")
    assert (second.status_code, second.json()["code"]) == (409, "already-cancelled")


@pytest.mark.parametrize(
    "reason", ["Jack Miller, 5 Elm Street", "", " ", "Other", "other ", "changed my mind", None, 5]
)
async def test_a_reason_is_one_of_a_list(
    client: httpx.AsyncClient, order: str, reason: object
) -> None:
    """Text that a caller writes could name a person, and would be in events that stay."""
    answer = await client.post(f"{order}/cancel", json={"reason": reason})

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    assert (await client.get(order)).json()["status"] == "pending"


async def test_text_of_an_earlier_release_is_not_shown(
    client: httpx.AsyncClient, resources: Resources, order: str
) -> None:
    text = cast("CancelReason", "Jack Miller moved away")
    await decide(resources, order, CancelOrder(reason=text))

    shown, history = await client.get(order), await client.get(f"{order}/events")

    assert shown.json()["reason"] == "other"
    assert history.json()["events"][1]["data"]["reason"] == "other"
    assert "Miller" not in shown.text + history.text


async def test_a_rejected_order_cannot_be_cancelled(
    client: httpx.AsyncClient, resources: Resources, order: str
) -> None:
    await decide(resources, order, RejectOrder(reason="insufficient-credit"))

    answer = await client.post(f"{order}/cancel", json={"reason": "changed-my-mind"})

    assert (answer.status_code, answer.json()["code"]) == (409, "rejected")


async def test_a_repeated_placement_is_one_order(
    client: httpx.AsyncClient, resources: Resources, iphone: str
) -> None:
    body = {"user_id": str(uuid4()), "lines": [{"item_id": iphone, "quantity": 1}]}
    headers = {"Idempotency-Key": "order-1"}

    answers = [await client.post("/v1/orders", json=body, headers=headers) for _ in range(3)]

    assert len({answer.json()["order_id"] for answer in answers}) == 1
    count = "SELECT count(*) FROM streams WHERE category = 'order'"
    assert await resources.pool.fetchval(count) == 1


async def test_the_service_is_ready(client: httpx.AsyncClient) -> None:
    assert (await client.get("/health/live")).status_code == 200
    assert (await client.get("/health/ready")).json()["status"] == "ready"


async def test_the_history_is_returned_as_it_was_recorded(
    client: httpx.AsyncClient, resources: Resources, order: str
) -> None:
    await decide(resources, order, ConfirmOrder(confirmed_at=datetime.now(UTC)))

    page = (await client.get(f"{order}/events")).json()

    assert [event["type"] for event in page["events"]] == ["order-placed", "order-confirmed"]
    assert page["events"][0]["data"]["amount"] == "16166.64"
    assert page["next"] is None


async def test_an_order_is_confirmed_though_its_item_was_repriced_and_delisted_meanwhile(
    client: httpx.AsyncClient, resources: Resources, order: str, iphone: str
) -> None:
    await client.post(f"/v1/items/{iphone}/price-changes", json={"price": "1.00"})
    await client.delete(f"/v1/items/{iphone}")

    await decide(resources, order, ConfirmOrder(confirmed_at=datetime.now(UTC)))

    confirmed = (await client.get(order)).json()
    assert (confirmed["status"], confirmed["amount"]) == ("confirmed", "16166.64")


@pytest.mark.parametrize("path", ["", "/events", "/journey"])
async def test_an_unknown_order_is_not_found(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(f"/v1/orders/{uuid4()}{path}")

    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-order")


async def test_an_unknown_order_is_not_cancelled(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"/v1/orders/{uuid4()}/cancel", json={"reason": "other"})

    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-order")


async def test_a_journey_without_other_services_shows_the_data_of_this_one(
    client: httpx.AsyncClient, order: str
) -> None:
    journey = (await client.get(f"{order}/journey")).json()

    assert [hop["hop"] for hop in journey["hops"]] == ["recorded"]
    assert len(journey["unknown"]) == 1
