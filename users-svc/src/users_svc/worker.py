"""Reactions to messages: credit is reserved and released, read models are updated."""

from uuid import UUID

from opentelemetry import trace

from shared.eventsourcing.handler import react
from shared.inbox.consumer import Consumer, DeadLetterWriter, Reactions, merge_reactions
from shared.messaging.messages import Message
from shared.runtime.postgres import Connection
from users_svc import confirmed_orders, order_credit, order_messages
from users_svc.bootstrap import Resources
from users_svc.commands import ReleaseCredit, ReserveCredit, UserCommand
from users_svc.read_models import READ_MODELS
from users_svc.user import USER

NAME = order_credit.CONSUMER

ORDER_ID = "app.order.id"
"""The attribute of a span that shows which order it is about."""


def create_consumer(resources: Resources, write_dead_letter: DeadLetterWriter) -> Consumer:
    """The reactions of users-svc, by topic and message type."""

    async def reserve(connection: Connection, message: Message) -> None:
        order = order_messages.PLACED.read(message)
        trace.get_current_span().set_attribute(ORDER_ID, str(order.order_id))
        command = ReserveCredit(user_id=order.user_id, order_id=order.order_id, amount=order.amount)
        await decide(connection, order.user_id, command, message)

    async def note_confirmed(connection: Connection, message: Message) -> None:
        order = order_messages.CONFIRMED.read(message)
        await confirmed_orders.add(connection, order.user_id, order.order_id, order.ordered_at)

    async def release(connection: Connection, message: Message) -> None:
        order = order_messages.CLOSED.read(message)
        trace.get_current_span().set_attribute(ORDER_ID, str(order.order_id))
        await confirmed_orders.remove(connection, order.user_id, order.order_id)
        command = ReleaseCredit(order_id=order.order_id)
        await decide(connection, order.user_id, command, message)

    async def decide(
        connection: Connection, user_id: UUID, command: UserCommand, message: Message
    ) -> None:
        users = resources.users.within(connection)
        await react(users, USER, user_id, command, metadata=message.metadata)

    domain: Reactions = {
        order_messages.TOPIC: {
            "order-placed": [reserve],
            "order-confirmed": [note_confirmed],
            "order-rejected": [release],
            "order-cancelled": [release],
        }
    }
    reactions = merge_reactions(domain, READ_MODELS)
    return Consumer(NAME, resources.pool, reactions, write_dead_letter, resources.relay_notifier)
