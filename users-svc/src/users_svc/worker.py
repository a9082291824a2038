"""Reactions to messages: credit is reserved and released, read models are updated."""

from shared.eventsourcing.handler import CausedCommand
from shared.inbox.consumer import (
    Commands,
    Consumer,
    DeadLetterWriter,
    Delivery,
    deciding,
    merge_reactions,
    to_reaction,
)
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
    note = to_reaction(confirmed_orders.project)
    domain = (
        deciding(resources.users, USER, USER_COMMANDS),
        {order_messages.TOPIC: {type_: [note] for type_ in confirmed_orders.TYPES}},
    )
    reactions = merge_reactions(domain, READ_MODELS)
    return Consumer(NAME, resources.pool, reactions, write_dead_letters, resources.relay_notifier)


def to_reservation(delivery: Delivery) -> CausedCommand[UserCommand]:
    """What a placed order means for its user."""
    order = order_messages.PLACED.read(delivery.message)
    delivery.span.set_attribute(ORDER_ID, str(order.order_id))
    command = ReserveCredit(user_id=order.user_id, order_id=order.order_id, amount=order.amount)
    return delivery.cause(order.user_id, command)


def to_release(delivery: Delivery) -> CausedCommand[UserCommand]:
    """What a rejected order means for its user, and a cancelled one."""
    order = order_messages.CLOSED.read(delivery.message)
    delivery.span.set_attribute(ORDER_ID, str(order.order_id))
    return delivery.cause(order.user_id, ReleaseCredit(order_id=order.order_id))


USER_COMMANDS: Commands[UserCommand] = {
    order_messages.TOPIC: {
        "order-placed": to_reservation,
        "order-rejected": to_release,
        "order-cancelled": to_release,
    }
}
