"""Reactions: a confirmed order adds a thing, and the list follows."""

from collections.abc import Sequence

from shared.eventsourcing.handler import CausedCommand, react
from shared.eventsourcing.recorded import Recorded
from shared.inbox.consumer import (
    Consumer,
    DeadLetterWriter,
    Delivery,
    Reactions,
    merge_reactions,
)
from shared.runtime.identifiers import derive_id
from shared.runtime.postgres import Connection
from things_svc import order_messages
from things_svc.bootstrap import Resources
from things_svc.commands import AddThing, ThingCommand
from things_svc.read_models import READ_MODELS
from things_svc.thing import THING

NAME = "things-worker"

ORDER_ID = "app.order.id"
"""The attribute of a span that shows which order it is about."""


def create_consumer(resources: Resources, write_dead_letters: DeadLetterWriter) -> Consumer:
    """The reactions of things-svc, by topic and message type."""

    async def add(connection: Connection, deliveries: Sequence[Delivery]) -> Sequence[Recorded]:
        commands = [to_command(each) for each in deliveries]
        return await react(resources.things, THING, connection, commands)

    domain: Reactions = {order_messages.TOPIC: {"order-confirmed": [add]}}
    reactions = merge_reactions(domain, READ_MODELS)
    return Consumer(NAME, resources.pool, reactions, write_dead_letters, resources.relay_notifier)


def to_command(delivery: Delivery) -> CausedCommand[ThingCommand]:
    """The new id follows from the order's: a repeated message finds what was added."""
    order = order_messages.CONFIRMED.read(delivery.message)
    delivery.span.set_attribute(ORDER_ID, str(order.order_id))
    thing_id = derive_id(order.order_id, "thing")
    return delivery.cause(thing_id, AddThing(thing_id=thing_id, name=f"order {order.order_id}"))
