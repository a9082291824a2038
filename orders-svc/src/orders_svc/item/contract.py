"""The public events of items.v1, for other services: each is public as it is in `events`."""

from orders_svc.item.events import (
    ItemDelisted,
    ItemEvent,
    ItemListed,
    ItemOriginCorrected,
    ItemRepriced,
)
from shared.eventsourcing.codec import Codec
from shared.messaging.messages import PublicEvent

TOPIC = "items.v1"

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
    return CODEC.to_public_event(event, topic=TOPIC, key=str(event.item_id))
