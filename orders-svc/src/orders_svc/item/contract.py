"""What the outside may know: the public events of items.v1, and how ours become them."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import assert_never
from uuid import UUID

from orders_svc.item import events
from orders_svc.item.events import ItemEvent
from shared.eventsourcing.codec import Codec
from shared.messaging.messages import PublicEvent

TOPIC = "items.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemListed:
    item_id: UUID
    name: str
    type: str
    origin: str
    price: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRepriced:
    """Orders hold the price at which they were placed; this changes none of them."""

    item_id: UUID
    price: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOriginCorrected:
    """The item comes from `origin` since `effective_at`, which may lie in the past."""

    item_id: UUID
    type: str
    origin: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDelisted:
    """No order is placed with the item any more; those that were are not touched."""

    item_id: UUID
    effective_at: datetime


PublicItemEvent = ItemListed | ItemRepriced | ItemOriginCorrected | ItemDelisted

CODEC: Codec[PublicItemEvent] = Codec(
    {
        "item-listed": ItemListed,
        "item-repriced": ItemRepriced,
        "item-origin-corrected": ItemOriginCorrected,
        "item-delisted": ItemDelisted,
    }
)


def publish(event: ItemEvent) -> PublicEvent:
    """The public form of an event; all events of an item share the item's id as key."""
    return CODEC.public(public_of(event), topic=TOPIC, key=str(event.item_id))


def public_of(event: ItemEvent) -> PublicItemEvent:
    match event:
        case events.ItemListed():
            return ItemListed(
                item_id=event.item_id,
                name=event.name,
                type=event.type,
                origin=event.origin,
                price=event.price,
                effective_at=event.effective_at,
            )
        case events.ItemRepriced():
            return ItemRepriced(
                item_id=event.item_id, price=event.price, effective_at=event.effective_at
            )
        case events.ItemOriginCorrected():
            return ItemOriginCorrected(
                item_id=event.item_id,
                type=event.type,
                origin=event.origin,
                effective_at=event.effective_at,
            )
        case events.ItemDelisted():
            return ItemDelisted(item_id=event.item_id, effective_at=event.effective_at)
        case _:
            assert_never(event)
