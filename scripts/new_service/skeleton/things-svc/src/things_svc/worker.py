"""Reactions: a confirmed order adds a thing, and the list follows."""

from opentelemetry import trace

from shared.eventsourcing.handler import react
from shared.inbox.consumer import Consumer, DeadLetterWriter, Reactions, merge_reactions
from shared.messaging.messages import Message
from shared.runtime.identifiers import derive_id
from shared.runtime.postgres import Connection
from things_svc import order_messages
from things_svc.bootstrap import Resources
from things_svc.commands import AddThing
from things_svc.read_models import READ_MODELS
from things_svc.thing import THING

NAME = "things-worker"

ORDER_ID = "app.order.id"
"""The attribute of a span that shows which order it is about."""


def create_consumer(resources: Resources, write_dead_letter: DeadLetterWriter) -> Consumer:
    """The reactions of things-svc, by topic and message type."""

    async def add(connection: Connection, message: Message) -> None:
        """The new id follows from the order's: a repeated message finds what was added."""
        order = order_messages.CONFIRMED.read(message)
        trace.get_current_span().set_attribute(ORDER_ID, str(order.order_id))
        thing_id = derive_id(order.order_id, "thing")
        command = AddThing(thing_id=thing_id, name=f"order {order.order_id}")
        things = resources.things.within(connection)
        await react(things, THING, thing_id, command, metadata=message.metadata)

    domain: Reactions = {order_messages.TOPIC: {"order-confirmed": [add]}}
    reactions = merge_reactions(domain, READ_MODELS)
    return Consumer(NAME, resources.pool, reactions, write_dead_letter, resources.relay_notifier)
