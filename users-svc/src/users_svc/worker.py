"""Reactions to messages: credit is reserved and released, read models are updated."""

from collections.abc import Sequence

from shared.eventsourcing.handler import CausedCommand, react
from shared.eventsourcing.recorded import Recorded
from shared.inbox.consumer import (
    Consumer,
    DeadLetterWriter,
    Delivery,
    Reactions,
    merge_reactions,
    to_reaction,
)
from shared.runtime.postgres import Connection
from users_svc import confirmed_orders, order_credit, order_messages
from users_svc.bootstrap import Resources
from users_svc.commands import ReleaseCredit, ReserveCredit, UserCommand
from users_svc.read_models import READ_MODELS
from users_svc.user import USER

NAME = order_credit.CONSUMER

ORDER_ID = "app.order.id"
"""The attribute of a span that shows which order it is about."""


def create_consumer(resources: Resources, write_dead_letters: DeadLetterWriter) -> Consumer:
    """The reactions of users-svc, by topic and message type."""

    async def decide(connection: Connection, deliveries: Sequence[Delivery]) -> Sequence[Recorded]:
        commands = [to_command(each) for each in deliveries]
        return await react(resources.users, USER, connection, commands)

    note = to_reaction(confirmed_orders.project)
    domain: Reactions = {
        order_messages.TOPIC: {
            "order-placed": [decide],
            "order-confirmed": [note],
            "order-rejected": [decide, note],
            "order-cancelled": [decide, note],
        }
    }
    reactions = merge_reactions(domain, READ_MODELS)
    return Consumer(NAME, resources.pool, reactions, write_dead_letters, resources.relay_notifier)


def to_command(delivery: Delivery) -> CausedCommand[UserCommand]:
    """What a placed order means for its user, and a rejected or cancelled one."""
    message = delivery.message
    if message.type in order_messages.PLACED.names:
        placed = order_messages.PLACED.read(message)
        delivery.span.set_attribute(ORDER_ID, str(placed.order_id))
        return delivery.cause(
            placed.user_id,
            ReserveCredit(user_id=placed.user_id, order_id=placed.order_id, amount=placed.amount),
        )
    closed = order_messages.CLOSED.read(message)
    delivery.span.set_attribute(ORDER_ID, str(closed.order_id))
    return delivery.cause(closed.user_id, ReleaseCredit(order_id=closed.order_id))
