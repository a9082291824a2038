"""A cache of recently ordered items, so that most orders need not read them again.

The cache is never trusted: an order passes the versions that it read here, and the append refuses
it as stale if an item has changed since. A repriced item is ordered at its new price, a delisted
one not at all.
"""

from collections.abc import Iterable
from uuid import UUID

from orders_svc.item.events import ItemEvent
from orders_svc.item.item import ITEM, Listed, require_listed
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.handler import Outcome, load_many
from shared.eventsourcing.state_cache import count_values

VALUES_MAX = 100_000
"""Of all items in the cache, as a `StateCache` counts them; the oldest entry is evicted first."""


class ItemCache:
    def __init__(self, store: EventStore[ItemEvent]) -> None:
        self._store = store
        self._known: dict[UUID, Outcome[Listed]] = {}
        self._values = 0

    async def find(self, item_ids: set[UUID]) -> dict[UUID, Outcome[Listed]]:
        """The items with their versions.

        Raises:
            NotFound: one was never listed.
            Refused: one is delisted.
        """
        known = {item_id: self._known[item_id] for item_id in item_ids & self._known.keys()}
        if missing := item_ids - known.keys():
            known |= await self._read(missing)
        return known

    def forget(self, item_ids: Iterable[UUID]) -> None:
        """Remove items of which some have changed; the next order reads them again."""
        for item_id in item_ids:
            if forgotten := self._known.pop(item_id, None):
                self._values -= count(forgotten)

    async def _read(self, item_ids: set[UUID]) -> dict[UUID, Outcome[Listed]]:
        found = {
            item_id: Outcome(state=require_listed(item.state), version=item.version)
            for item_id, item in (await load_many(self._store, ITEM, item_ids)).items()
        }
        self._put(found)
        return found

    def _put(self, found: dict[UUID, Outcome[Listed]]) -> None:
        self.forget(found)  # another request can have read them meanwhile
        self._known |= found
        self._values += sum(map(count, found.values()))
        while self._values > VALUES_MAX and len(self._known) > 1:
            self.forget([next(iter(self._known))])


def count(item: Outcome[Listed]) -> int:
    return count_values(ITEM, item.state)
