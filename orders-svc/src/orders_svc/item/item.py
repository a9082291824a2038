"""An item as two pure functions: `decide` on a command, `evolve` by an event."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import assert_never
from uuid import UUID

from orders_svc.item.commands import (
    CorrectItemOrigin,
    DelistItem,
    ItemCommand,
    ListItem,
    RepriceItem,
)
from orders_svc.item.events import (
    ItemDelisted,
    ItemEvent,
    ItemListed,
    ItemOriginCorrected,
    ItemRepriced,
)
from shared.eventsourcing.decider import Decider, require_state
from shared.eventsourcing.errors import NotFound, Refused
from shared.eventsourcing.timeline import CHANGES_MAX, Timeline

UNKNOWN_ITEM = "unknown-item"
ITEM_DELISTED = "item-delisted"
SAME_PRICE = "same-price"
SAME_ORIGIN = "same-origin"
TOO_MANY_PRICES = "too-many-prices"
TOO_MANY_ORIGINS = "too-many-origins"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotListed:
    """No item has this id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An item that can be ordered and changed."""

    item_id: UUID
    name: str
    type: str
    origins: Timeline[str]
    prices: Timeline[Decimal]

    @property
    def origin(self) -> str:
        """The origin after all corrections known so far."""
        return self.origins.latest

    @property
    def price(self) -> Decimal:
        """The price after all changes known so far."""
        return self.prices.latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Delisted:
    """An item that can only be read, because past orders refer to it; `last` is its last state."""

    last: Listed


Item = NotListed | Listed | Delisted


def require_known(item: Item) -> Listed | Delisted:
    """The item, if it can be read. Raises NotFound: it was never listed."""
    if isinstance(item, NotListed):
        raise NotFound(UNKNOWN_ITEM, "there is no such item")
    return item


def require_listed(item: Item) -> Listed:
    """The item, if it can be ordered and changed.

    Raises:
        NotFound: it was never listed.
        Refused: it is delisted.
    """
    match require_known(item):
        case Delisted(last=last):
            raise Refused(ITEM_DELISTED, f"the item {last.item_id} is delisted")
        case Listed() as listed:
            return listed


def decide(command: ItemCommand, item: Item) -> Sequence[ItemEvent]:
    """The events of a command.

    Raises:
        NotFound: there is no such item.
        Refused: a business rule refuses the command.
    """
    match command:
        case ListItem():
            return list_(command)
        case RepriceItem():
            return reprice(command, require_listed(item))
        case CorrectItemOrigin():
            return correct_origin(command, require_listed(item))
        case DelistItem():
            return delist(command, require_listed(item))
        case _:
            assert_never(command)


def list_(command: ListItem) -> Sequence[ItemEvent]:
    return [
        ItemListed(
            item_id=command.item_id,
            name=command.name,
            type=command.type,
            origin=command.origin,
            price=command.price,
            effective_at=command.effective_at,
        )
    ]


def reprice(command: RepriceItem, item: Listed) -> Sequence[ItemEvent]:
    if item.prices.at(command.effective_at) == command.price:
        raise Refused(SAME_PRICE, f"the item already costs {command.price} at that time")
    if item.prices.is_full:
        raise Refused(TOO_MANY_PRICES, f"a price changes at most {CHANGES_MAX:,} times")
    return [
        ItemRepriced(item_id=item.item_id, price=command.price, effective_at=command.effective_at)
    ]


def correct_origin(command: CorrectItemOrigin, item: Listed) -> Sequence[ItemEvent]:
    if item.origins.at(command.effective_at) == command.origin:
        raise Refused(SAME_ORIGIN, f"the item already comes from {command.origin} at that time")
    if item.origins.is_full:
        raise Refused(TOO_MANY_ORIGINS, f"an origin is corrected at most {CHANGES_MAX:,} times")
    return [
        ItemOriginCorrected(
            item_id=item.item_id,
            type=item.type,
            origin=command.origin,
            effective_at=command.effective_at,
        )
    ]


def delist(command: DelistItem, item: Listed) -> Sequence[ItemEvent]:
    """Orders that were placed before are not changed: they have their own price."""
    return [ItemDelisted(item_id=item.item_id, effective_at=command.effective_at)]


def evolve(item: Item, event: ItemEvent) -> Item:
    """The state after one more event. Raises ImpossibleHistory."""
    match event:
        case ItemListed():
            require_state(item, NotListed, event)
            return Listed(
                item_id=event.item_id,
                name=event.name,
                type=event.type,
                origins=Timeline.begin(event.effective_at, event.origin),
                prices=Timeline.begin(event.effective_at, event.price),
            )
        case ItemRepriced():
            before = require_state(item, Listed, event)
            return replace(before, prices=before.prices.changed(event.effective_at, event.price))
        case ItemOriginCorrected():
            before = require_state(item, Listed, event)
            return replace(before, origins=before.origins.changed(event.effective_at, event.origin))
        case ItemDelisted():
            return Delisted(last=require_state(item, Listed, event))
        case _:
            assert_never(event)


def count_values(item: Item) -> int:
    """Of a state: its origins and prices, which can be many."""
    match item:
        case NotListed():
            return 0
        case Listed():
            return len(item.origins) + len(item.prices)
        case Delisted(last=last):
            return count_values(last)
        case _:
            assert_never(item)


ITEM: Decider[ItemCommand, Item, ItemEvent] = Decider(
    initial=NotListed(), decide=decide, evolve=evolve, count_values=count_values
)
