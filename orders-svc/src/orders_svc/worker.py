"""Reactions to messages: orders are confirmed and rejected, read models are updated."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import assert_never
from uuid import UUID

from opentelemetry import trace

from orders_svc import user_messages
from orders_svc.bootstrap import Resources
from orders_svc.order import contract, publications, summaries
from orders_svc.order.commands import ConfirmOrder, OrderCommand, RejectOrder
from orders_svc.order.order import ORDER, TIMED_OUT
from orders_svc.order.summaries import OverdueOrder
from orders_svc.read_models import READ_MODELS
from orders_svc.tracing import ORDER_ID
from shared.eventsourcing.handler import handle, react
from shared.inbox.consumer import (
    Consumer,
    DeadLetterWriter,
    Reactions,
    is_transient,
    merge_reactions,
)
from shared.messaging.messages import Message, Metadata
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Connection

NAME = publications.CONSUMER

OVERDUE_PERIOD_SECONDS = 1.0
OVERDUE_MAX = 500

log = logging.getLogger(__name__)


def create_consumer(resources: Resources, write_dead_letter: DeadLetterWriter) -> Consumer:
    """The reactions of orders-svc, by topic and message type."""

    async def decide_on_credit(connection: Connection, message: Message) -> None:
        answer = user_messages.CODEC.read(message)
        trace.get_current_span().set_attribute(ORDER_ID, str(answer.order_id))
        command: OrderCommand
        match answer:
            case user_messages.CreditReserved():
                command = ConfirmOrder(confirmed_at=datetime.now(UTC))
            case user_messages.CreditRefused():
                command = RejectOrder(reason=answer.reason)
            case _:
                assert_never(answer)
        orders = resources.orders.within(connection)
        await react(orders, ORDER, answer.order_id, command, metadata=message.metadata)

    domain: Reactions = {
        user_messages.TOPIC: {
            "credit-reserved": [decide_on_credit],
            "credit-refused": [decide_on_credit],
        },
        contract.TOPIC: {type_: [publications.note] for type_ in contract.CODEC.names},
    }
    reactions = merge_reactions(domain, READ_MODELS)
    return Consumer(NAME, resources.pool, reactions, write_dead_letter, resources.relay_notifier)


async def reject_overdue_periodically(resources: Resources, timeout: timedelta) -> None:
    """Reject orders that are pending for longer than `timeout`, every OVERDUE_PERIOD_SECONDS.

    A later reservation is released when users-svc reads the rejection. A worker that has just
    started waits once: the decisions can be among the records that it has not read yet.
    """
    await asyncio.sleep(timeout.total_seconds())
    after: OverdueOrder | None = None
    while True:
        try:
            after = await reject_overdue(resources, timeout, after)
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("overdue orders are read again later: %r", error)
        await asyncio.sleep(OVERDUE_PERIOD_SECONDS)


async def reject_overdue(
    resources: Resources, timeout: timedelta, after: OverdueOrder | None = None
) -> OverdueOrder | None:
    """One round: reject at most OVERDUE_MAX orders, those after the order `after`.

    Returns where the next round begins; None for the oldest order. Orders that cannot be rejected
    stay overdue, and would otherwise be all that any round reads.
    """
    overdue = await summaries.list_overdue(
        resources.pool,
        now=datetime.now(UTC),
        limit=timeout,
        after=after,
        orders_max=OVERDUE_MAX,
    )
    rejection, cause = RejectOrder(reason=TIMED_OUT), create_metadata()
    for order in overdue:
        try:
            await handle(resources.orders, ORDER, order.order_id, rejection, metadata=cause)
        except Exception as error:
            if is_transient(error):
                log.warning("order %s is rejected later: %r", order.order_id, error)
                return order
            log.exception("order %s is overdue, but could not be rejected", order.order_id)
    return overdue[-1] if len(overdue) == OVERDUE_MAX else None


def create_metadata() -> Metadata:
    cause: UUID = new_id()
    return Metadata(correlation_id=cause, causation_id=cause)
