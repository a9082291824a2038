"""What the outside may know: the public events of items.v1, and how ours become them."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from orders_svc.item import events
from orders_svc.item.events import ItemEvent
from shared.codec import Codec
from shared.messages import PublicEvent

TOPIC = "items.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemListed:
    item_id: UUID
    name: str
    type: str
    origin: str
    price: Decimal
    effective_at: datetime


PublicItemEvent = ItemListed

CODEC: Codec[PublicItemEvent] = Codec({"item-listed": ItemListed})


def publish(event: ItemEvent) -> PublicEvent:
    """The public form of an event; all events of an item share the item's id as key."""
    return CODEC.public(public_of(event), topic=TOPIC, key=str(event.item_id))


def public_of(event: events.ItemEvent) -> PublicItemEvent:
    return ItemListed(
        item_id=event.item_id,
        name=event.name,
        type=event.type,
        origin=event.origin,
        price=event.price,
        effective_at=event.effective_at,
    )
