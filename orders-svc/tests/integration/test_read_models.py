"""Read models: messages once, twice and out of order; lists by page."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from uuid import UUID

import asyncpg
import httpx
import pytest

from orders_svc import worker
from orders_svc.bootstrap import Resources
from orders_svc.item import catalogue
from orders_svc.item import contract as item_contract
from orders_svc.item.events import ItemDelisted, ItemListed, ItemOriginCorrected, ItemRepriced
from orders_svc.order import contract, summaries
from orders_svc.order.events import OrderCancelled, OrderConfirmed, OrderEvent, OrderPlaced
from orders_svc.order.summaries import OrderSummary, PendingOrders
from shared.messaging.messages import Message, RecordedEvent
from shared.projections.read_models import Projection
from shared.runtime.identifiers import new_id

KNOWN_REASONS = files("orders_svc") / "migrations/0003_known_reasons.sql"
PLACED_AT = datetime(2016, 11, 11, tzinfo=UTC)
ORDER, USER, ITEM = UUID(int=1), UUID(int=2), UUID(int=3)

PLACED = OrderPlaced(
    order_id=ORDER, user_id=USER, lines=(), amount=Decimal("10.00"), ordered_at=PLACED_AT
)
CONFIRMED = OrderConfirmed(
    order_id=ORDER, user_id=USER, lines=(), amount=Decimal("10.00"), ordered_at=PLACED_AT
)
CANCELLED = OrderCancelled(
    order_id=ORDER,
    user_id=USER,
    lines=(),
    amount=Decimal("10.00"),
    ordered_at=PLACED_AT,
    was_confirmed=True,
    reason="changed-my-mind",
)
STORY: list[tuple[contract.PublicOrderEvent, int]] = [
    (PLACED, 1),
    (CONFIRMED, 2),
    (CANCELLED, 3),
]
LISTED = ItemListed(
    item_id=ITEM,
    name="iphone",
    type="phone",
    origin="BJ",
    price=Decimal("5388.88"),
    effective_at=PLACED_AT,
)


def message(type_: str, data: bytes, version: int) -> Message:
    return Message(
        topic="orders.v1",
        partition=0,
        offset=0,
        key="key",
        event_id=new_id(),
        type=type_,
        schema_version=1,
        stream_id=ORDER,
        stream_version=version,
        previous_version=None,
        correlation_id=new_id(),
        time=PLACED_AT,
        traceparent=None,
        data=data,
    )


def of_order(event: contract.PublicOrderEvent, version: int) -> Message:
    return message(contract.CODEC.get_name(event), contract.CODEC.encode(event), version)


async def follow(resources: Resources, project: Projection, *messages: Message) -> None:
    async with resources.pool.acquire() as connection:
        await project(connection, messages)


async def orders(resources: Resources) -> Sequence[OrderSummary]:
    return await summaries.list_orders(
        resources.pool, user_id=USER, status=None, after=None, limit=10
    )


@pytest.mark.parametrize("repeats", [1, 2])
async def test_an_order_summary_follows_its_order(resources: Resources, repeats: int) -> None:
    for event, version in STORY:
        for _ in range(repeats):
            await follow(resources, summaries.project, of_order(event, version))

    [order] = await orders(resources)
    assert (order.status, order.reason) == ("cancelled", "changed-my-mind")


async def test_text_of_an_earlier_release_is_in_no_summary(resources: Resources) -> None:
    old = replace(CANCELLED, reason="Jack moved away")
    await follow(resources, summaries.project, of_order(PLACED, 1), of_order(old, 2))
    [order] = await orders(resources)
    assert order.reason == "other"

    set_reason = "UPDATE order_summaries SET reason = $1"
    for before, after in (("Jack moved away", "other"), ("found-cheaper", "found-cheaper")):
        await resources.pool.execute(set_reason, before)
        await resources.pool.execute(KNOWN_REASONS.read_text())
        [order] = await orders(resources)
        assert order.reason == after


async def test_an_old_message_does_not_undo_a_newer_one(resources: Resources) -> None:
    for event, version in [*STORY, *reversed(STORY)]:
        await follow(resources, summaries.project, of_order(event, version))

    [order] = await orders(resources)
    assert order.status == "cancelled"


async def test_of_the_messages_of_one_batch_the_newest_holds(resources: Resources) -> None:
    story = [of_order(event, version) for event, version in [*STORY, *reversed(STORY)]]

    await follow(resources, summaries.project, *story)

    [order] = await orders(resources)
    assert (order.status, order.reason) == ("cancelled", "changed-my-mind")


def repriced(price: str, days: int) -> ItemRepriced:
    at = PLACED_AT + timedelta(days=days)
    return ItemRepriced(item_id=ITEM, price=Decimal(price), effective_at=at)


def corrected(origin: str, days: int) -> ItemOriginCorrected:
    at = PLACED_AT + timedelta(days=days)
    return ItemOriginCorrected(item_id=ITEM, type="phone", origin=origin, effective_at=at)


def of_item(event: item_contract.PublicItemEvent, version: int) -> Message:
    codec = item_contract.CODEC
    return message(codec.get_name(event), codec.encode(event), version)


ITEM_STORY: list[tuple[item_contract.PublicItemEvent, int]] = [
    (LISTED, 1),
    (repriced("3.00", 10), 2),
    (repriced("2.00", 5), 3),
    (corrected("SH", 10), 4),
    (corrected("GZ", 5), 5),
]


@pytest.mark.parametrize("repeats", [1, 2])
async def test_a_catalogue_entry_follows_its_item_by_effective_time(
    resources: Resources, repeats: int
) -> None:
    for event, version in [*ITEM_STORY, (LISTED, 1), (repriced("9.00", 20), 2)]:
        for _ in range(repeats):
            await follow(resources, catalogue.project, of_item(event, version))

    [item] = await catalogue.list_items(resources.pool, after=None, limit=10)
    assert (item.price, item.origin) == (Decimal("3.00"), "SH")


async def test_a_delisted_item_is_not_listed(resources: Resources) -> None:
    delisted = ItemDelisted(item_id=ITEM, effective_at=PLACED_AT)
    for each in (of_item(LISTED, 1), of_item(delisted, 2), of_item(LISTED, 1)):
        await follow(resources, catalogue.project, each)

    assert await catalogue.list_items(resources.pool, after=None, limit=10) == []


async def test_lists_are_returned_by_page(client: httpx.AsyncClient, resources: Resources) -> None:
    ids = sorted(new_id() for _ in range(5))
    for order_id in ids:
        placed = replace(PLACED, order_id=order_id)
        await follow(resources, summaries.project, of_order(placed, 1))

    seen: list[str] = []
    query = {"user_id": str(USER), "limit": "2"}
    while query.get("after") != "None":
        page = (await client.get("/v1/orders", params=query)).json()
        seen += [order["order_id"] for order in page["orders"]]
        query["after"] = str(page["next"])

    assert seen == [str(order_id) for order_id in ids]


async def place_orders(client: httpx.AsyncClient, count: int) -> list[str]:
    item = {"name": "iphone", "type": "phone", "origin": "BJ", "price": "1.00"}
    item_id = (await client.post("/v1/items", json=item)).json()["item_id"]
    body = {"user_id": str(USER), "lines": [{"item_id": item_id, "quantity": 1}]}
    return [(await client.post("/v1/orders", json=body)).json()["order_id"] for _ in range(count)]


async def show_as_pending(resources: Resources, order_id: UUID, placed_at: datetime) -> None:
    placed = of_order(replace(PLACED, order_id=order_id), 1)
    await follow(resources, summaries.project, replace(placed, time=placed_at))


async def test_only_orders_that_waited_too_long_are_rejected(
    client: httpx.AsyncClient, resources: Resources
) -> None:
    placed = await place_orders(client, 2)
    now = datetime.now(UTC)
    for order_id, age in zip(placed, (timedelta(minutes=2), timedelta()), strict=True):
        await show_as_pending(resources, UUID(order_id), now - age)

    await worker.reject_overdue(resources, timedelta(minutes=1))

    old, new = [(await client.get(f"/v1/orders/{order_id}")).json() for order_id in placed]
    assert (old["status"], old["reason"]) == ("rejected", "timed-out")
    assert new["status"] == "pending"


async def test_pending_orders_are_counted_with_the_age_of_the_oldest(resources: Resources) -> None:
    now = datetime.now(UTC)

    async def count(orders_max: int = 10) -> PendingOrders:
        return await summaries.count_pending(resources.pool, now=now, orders_max=orders_max)

    assert await count() == PendingOrders(orders=0, age=timedelta())
    await show_as_pending(resources, new_id(), now + timedelta(seconds=5))
    assert await count() == PendingOrders(orders=1, age=timedelta()), "a clock is ahead"
    for seconds in (30, 90):
        await show_as_pending(resources, new_id(), now - timedelta(seconds=seconds))

    assert await count() == PendingOrders(orders=3, age=timedelta(seconds=90))
    assert await count(orders_max=2) == PendingOrders(orders=2, age=timedelta(seconds=90))


async def test_orders_that_cannot_be_rejected_do_not_keep_newer_ones_waiting(
    client: httpx.AsyncClient, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rows without an order are read before the order, in rounds of two."""
    monkeypatch.setattr(worker, "OVERDUE_MAX", 2)
    [order_id] = await place_orders(client, 1)
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    for stuck in range(3):
        await show_as_pending(resources, UUID(int=100 + stuck), long_ago)
    await show_as_pending(resources, UUID(order_id), long_ago + timedelta(minutes=1))

    first = await worker.reject_overdue(resources, timedelta(minutes=1))
    second = await worker.reject_overdue(resources, timedelta(minutes=1), first)
    third = await worker.reject_overdue(resources, timedelta(minutes=1), second)

    assert (await client.get(f"/v1/orders/{order_id}")).json()["status"] == "rejected"
    assert third is None, "the next round begins with the oldest again"


async def test_an_order_that_fails_for_now_does_not_keep_newer_ones_waiting(
    client: httpx.AsyncClient, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round ends, as the database can be unavailable, and the next one begins after it."""
    failing, order_id = map(UUID, await place_orders(client, 2))
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    await show_as_pending(resources, failing, long_ago)
    await show_as_pending(resources, order_id, long_ago + timedelta(minutes=1))
    read = resources.orders.read

    async def read_what_is_whole(stream_id: UUID, *page: int) -> list[RecordedEvent[OrderEvent]]:
        if stream_id == failing:
            raise asyncpg.DataCorruptedError("a page of this order cannot be read")
        return await read(stream_id, *page)

    monkeypatch.setattr(resources.orders, "read", read_what_is_whole)

    after = await worker.reject_overdue(resources, timedelta(minutes=1))
    await worker.reject_overdue(resources, timedelta(minutes=1), after)

    assert (await client.get(f"/v1/orders/{order_id}")).json()["status"] == "rejected"
