"""The cache of items keeps those that were read last, as many as have room."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from orders_svc.item import item_cache
from orders_svc.item.events import ItemListed
from orders_svc.item.item_cache import ItemCache
from shared.eventsourcing.state_cache import FIXED_VALUES, StateCache
from shared.messaging.messages import RecordedEvent

NEW_YEAR = datetime(2016, 1, 1, tzinfo=UTC)
VALUES = FIXED_VALUES + 2
"""Of an item with its first price and origin."""
LISTED = ItemListed(
    item_id=UUID(int=0),
    name="iphone",
    type="phone",
    origin="BJ",
    price=Decimal("5388.88"),
    effective_at=NEW_YEAR,
)


class Store:
    """Every item is listed; the ids of those that were read."""

    def __init__(self) -> None:
        self.read: list[UUID] = []
        self.states = StateCache()

    async def find_versions(self, item_ids: Iterable[UUID]) -> dict[UUID, int]:
        return dict.fromkeys(item_ids, 1)

    async def read_from(self, first_versions: Iterable[UUID]) -> dict[UUID, Any]:
        self.read += first_versions
        return {each: [record(each)] for each in first_versions}


def record(item_id: UUID) -> RecordedEvent[Any]:
    return RecordedEvent(
        stream_id=item_id,
        version=1,
        event_id=item_id,
        event=replace(LISTED, item_id=item_id),
        recorded_at=NEW_YEAR,
    )


async def find(cache: ItemCache, *numbers: int) -> set[int]:
    return {each.int for each in await cache.find({UUID(int=number) for number in numbers})}


async def test_the_items_that_were_read_first_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_cache, "VALUES_MAX", 3 * VALUES)
    store: Any = Store()
    cache = ItemCache(store)
    for number in (1, 2, 3):
        await find(cache, number)
    cache.forget([UUID(int=2)])
    for number in (2, 4):
        await find(cache, number)

    store.read.clear()
    assert await find(cache, 2, 3, 4) == {2, 3, 4}
    assert store.read == []
    assert await find(cache, 1) == {1}
    assert store.read == [UUID(int=1)]


async def test_an_order_with_more_items_than_have_room_finds_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(item_cache, "VALUES_MAX", VALUES)
    store: Any = Store()

    assert await find(ItemCache(store), 1, 2, 3) == {1, 2, 3}
