"""Reactions: a confirmed order adds a thing, and the list follows."""

from shared.eventsourcing.handler import CausedCommand
from shared.inbox.consumer import (
    Commands,
    Consumer,
    DeadLetterWriter,
    Delivery,
    deciding,
    merge_reactions,
)
from shared.runtime.identifiers import derive_id
from things_svc import order_messages
from things_svc.bootstrap import Resources
from things_svc.commands import AddThing, SettleThing, ThingCommand
from things_svc.read_models import READ_MODELS
from things_svc.thing import THING

NAME = "things-worker"

ORDER_ID = "app.order.id"
"""The attribute of a span that shows which order it is about."""


def create_consumer(resources: Resources, write_dead_letters: DeadLetterWriter) -> Consumer:
    """The reactions of things-svc, by topic and message type."""
    domain = (deciding(resources.things, THING, THING_COMMANDS),)
    reactions = merge_reactions(domain, READ_MODELS)
    return Consumer(NAME, resources.pool, reactions, write_dead_letters, resources.relay_notifier)


def to_add(delivery: Delivery) -> CausedCommand[ThingCommand]:
    """The new id follows from the order's: a repeated message finds what was added."""
    order = order_messages.CONFIRMED.read(delivery.message)
    delivery.span.set_attribute(ORDER_ID, str(order.order_id))
    thing_id = derive_id(order.order_id, "thing")
    return delivery.cause(thing_id, AddThing(thing_id=thing_id, name=f"order {order.order_id}"))


def to_settle_thing(delivery: Delivery) -> CausedCommand[ThingCommand]:
    """The message says which thing is meant."""
    event = order_messages.CANCELLED.read(delivery.message)
    return delivery.cause(derive_id(event.order_id, "thing"), SettleThing())


THING_COMMANDS: Commands[ThingCommand] = {
    order_messages.TOPIC: {
        "order-confirmed": to_add,
        "order-cancelled": to_settle_thing,
    }
}
