"""What other services' events lead to here: credit is reserved and released, profiles follow."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from opentelemetry import trace

from shared import telemetry
from shared.consumer import Consumer
from shared.handler import handle
from shared.kafka import OutgoingRecord
from shared.messages import Consumed, Message
from users_svc import contract, order_messages, user_profiles
from users_svc.bootstrap import Resources
from users_svc.commands import ReleaseCredit, ReserveCredit, UserCommand
from users_svc.user import USER

NAME = "users-worker"


def create_consumer(
    resources: Resources, set_aside: Callable[[OutgoingRecord], Awaitable[None]]
) -> Consumer:
    """The reactions of users-svc, by topic and message type."""

    async def reserve(message: Message) -> None:
        order = order_messages.PLACED.decode(message.type, message.data)
        trace.get_current_span().set_attribute(telemetry.ORDER_ID, str(order.order_id))
        command = ReserveCredit(user_id=order.user_id, order_id=order.order_id, amount=order.amount)
        await take_effect(order.user_id, command, message)

    async def release(message: Message) -> None:
        order = order_messages.CLOSED.decode(message.type, message.data)
        trace.get_current_span().set_attribute(telemetry.ORDER_ID, str(order.order_id))
        await take_effect(order.user_id, ReleaseCredit(order_id=order.order_id), message)

    async def take_effect(user_id: UUID, command: UserCommand, message: Message) -> None:
        await handle(
            resources.users,
            USER,
            user_id,
            command,
            metadata=message.metadata,
            consumed=Consumed(
                consumer=NAME, stream_id=message.stream_id, version=message.stream_version
            ),
        )

    async def follow(message: Message) -> None:
        await user_profiles.project(resources.pool, message)

    return Consumer(
        NAME,
        {
            order_messages.TOPIC: {
                "order-placed": [reserve],
                "order-rejected": [release],
                "order-cancelled": [release],
            },
            contract.TOPIC: {"user-registered": [follow], "user-moved": [follow]},
        },
        set_aside,
    )
