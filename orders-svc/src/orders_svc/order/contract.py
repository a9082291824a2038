"""The public events of orders.v1, for other services: each is public as it is in `events`."""

from orders_svc.order.events import (
    OrderCancelled,
    OrderConfirmed,
    OrderEvent,
    OrderPlaced,
    OrderRejected,
)
from shared.eventsourcing.codec import Codec
from shared.messaging.messages import PublicEvent

TOPIC = "orders.v1"

PublicOrderEvent = OrderPlaced | OrderConfirmed | OrderRejected | OrderCancelled

CODEC: Codec[PublicOrderEvent] = Codec(
    {
        "order-placed": OrderPlaced,
        "order-confirmed": OrderConfirmed,
        "order-rejected": OrderRejected,
        "order-cancelled": OrderCancelled,
    }
)


def publish(event: OrderEvent) -> PublicEvent:
    """The public form of an event.

    The key is the user, not the order: the orders of a user stay in sequence, in the same
    partitions as the user's own events.
    """
    return CODEC.to_public_event(event, topic=TOPIC, key=str(event.user_id))
