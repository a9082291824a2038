"""Reactions to messages: orders are confirmed and rejected, read models are updated."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import assert_never
from uuid import UUID

from orders_svc import user_messages
from orders_svc.bootstrap import Resources
from orders_svc.order import contract, decision_times, publications, summaries
from orders_svc.order.commands import ConfirmOrder, OrderCommand, RejectOrder
from orders_svc.order.order import ORDER, TIMED_OUT
from orders_svc.order.summaries import OverdueOrder
from orders_svc.read_models import READ_MODELS
from orders_svc.tracing import ORDER_ID
from shared.eventsourcing.handler import CausedCommand, handle
from shared.inbox.consumer import (
    Commands,
    Consumer,
    DeadLetterWriter,
    Delivery,
    deciding,
    is_transient,
    merge_reactions,
    to_reaction,
)
from shared.messaging.messages import Metadata
from shared.runtime.identifiers import new_id
from shared.runtime.logs import because

NAME = publications.CONSUMER

OVERDUE_PERIOD_SECONDS = 1.0
OVERDUE_MAX = 500

log = logging.getLogger(__name__)


def create_consumer(resources: Resources, write_dead_letters: DeadLetterWriter) -> Consumer:
    """The reactions of orders-svc, by topic and message type."""
    note = to_reaction(publications.note)
    domain = (
        deciding(resources.orders, ORDER, ORDER_COMMANDS),
        {contract.TOPIC: {type_: [note] for type_ in contract.CODEC.names}},
    )
    reactions = merge_reactions(domain, READ_MODELS)
    return Consumer(
        NAME,
        resources.pool,
        reactions,
        write_dead_letters,
        resources.relay_notifier,
        on_applied=decision_times.record,
    )


def to_decision(delivery: Delivery) -> CausedCommand[OrderCommand]:
    """What the decision on a user's credit means for the order."""
    decision = user_messages.CODEC.read(delivery.message)
    delivery.span.set_attribute(ORDER_ID, str(decision.order_id))
    match decision:
        case user_messages.CreditReserved():
            return delivery.cause(decision.order_id, ConfirmOrder(confirmed_at=datetime.now(UTC)))
        case user_messages.CreditRefused():
            return delivery.cause(decision.order_id, RejectOrder(reason=decision.reason))
        case _:
            assert_never(decision)


ORDER_COMMANDS: Commands[OrderCommand] = {
    user_messages.TOPIC: {"credit-reserved": to_decision, "credit-refused": to_decision}
}


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
            log.warning("overdue orders are read again later", extra=because(error))
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
                log.warning("overdue orders are rejected later", extra=because(error))
                return order
            about = {"stream_id": order.order_id}
            log.exception("an order is overdue, but could not be rejected", extra=about)
    return overdue[-1] if len(overdue) == OVERDUE_MAX else None


def create_metadata() -> Metadata:
    cause: UUID = new_id()
    return Metadata(correlation_id=cause, causation_id=cause)
