"""The item cache is never trusted: an order gets the current price, in every process."""

from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from orders_svc.bootstrap import Resources
from orders_svc.item import item_cache
from shared.eventsourcing.event_store import EventStore

IPHONE = {"name": "iphone", "type": "phone", "origin": "BJ", "price": "5388.88"}


@pytest.fixture
async def ordered(client: httpx.AsyncClient) -> str:
    """The address of an item that was ordered, and so is in the cache."""
    item: str = (await client.post("/v1/items", json=IPHONE)).headers["Location"]
    await order(client, item)
    return item


async def order(client: httpx.AsyncClient, *items: str) -> httpx.Response:
    lines = [{"item_id": item.rpartition("/")[2], "quantity": 1} for item in items]
    return await client.post("/v1/orders", json={"user_id": str(uuid4()), "lines": lines})


async def reprice(client: httpx.AsyncClient, item: str) -> None:
    await client.post(f"{item}/price-changes", json={"price": "1.00"})


async def test_a_new_price_is_seen_by_the_next_order(
    client: httpx.AsyncClient, ordered: str
) -> None:
    await reprice(client, ordered)

    assert (await order(client, ordered)).json()["amount"] == "1.00"


async def test_without_the_version_check_the_old_price_would_be_used(
    client: httpx.AsyncClient, ordered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    append = EventStore.append

    async def trusting(store: EventStore[Any], *values: Any, **named: Any) -> int:
        return await append(store, *values, **named | {"read_versions": None})

    await reprice(client, ordered)
    monkeypatch.setattr(EventStore, "append", trusting)

    assert (await order(client, ordered)).json()["amount"] == "5388.88"


async def test_a_delisted_item_is_not_ordered_from_the_cache(
    client: httpx.AsyncClient, ordered: str
) -> None:
    await client.delete(ordered)

    answer = await order(client, ordered)

    assert (answer.status_code, answer.json()["code"]) == (409, "item-delisted")


async def test_one_changed_item_of_several_is_enough(
    client: httpx.AsyncClient, ordered: str
) -> None:
    other = (await client.post("/v1/items", json=IPHONE)).headers["Location"]
    await order(client, ordered, other)
    await reprice(client, other)

    assert (await order(client, ordered, other)).json()["amount"] == "5389.88"


def id_of(item: str) -> UUID:
    return UUID(item.rpartition("/")[2])


async def test_the_items_that_were_read_first_are_evicted(
    client: httpx.AsyncClient, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = resources.item_cache
    items = [(await client.post("/v1/items", json=IPHONE)).headers["Location"] for _ in range(4)]
    await order(client, items[0])
    monkeypatch.setattr(item_cache, "VALUES_MAX", 3 * cache._values)
    for item in items[1:3]:
        await order(client, item)
    cache.forget([id_of(items[1])])
    for item in (items[1], items[3]):
        await order(client, item)

    assert list(cache._known) == [id_of(items[number]) for number in (2, 1, 3)]


async def test_an_order_with_more_items_than_have_room_finds_all_of_them(
    client: httpx.AsyncClient, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_cache, "VALUES_MAX", 1)
    items = [(await client.post("/v1/items", json=IPHONE)).headers["Location"] for _ in range(4)]

    assert (await order(client, *items)).status_code == 201
    assert len(resources.item_cache._known) == 1
