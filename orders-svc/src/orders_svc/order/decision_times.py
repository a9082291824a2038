"""How long orders wait for their decision, as a metric."""

from collections.abc import Sequence

from orders_svc.order.contract import CODEC
from orders_svc.order.events import OrderRejected
from orders_svc.order.order import TIMED_OUT
from shared.messaging.messages import Message
from shared.runtime import metrics
from shared.runtime.identifiers import to_instant
from shared.runtime.postgres import Connection

DURATION = metrics.measure(
    "hometown.order.decision.duration",
    "s",
    "From the placement of an order to its decision, by outcome",
)
DECISION_VERSION = 2
"""Of the event after the placement; an order that was confirmed can be cancelled later."""


async def record(connection: Connection, messages: Sequence[Message]) -> None:
    """Record the time of each decision among messages of orders.v1."""
    for message in messages:
        if message.stream_version == DECISION_VERSION:
            waited = (message.time - to_instant(message.stream_id)).total_seconds()
            DURATION.record(max(0.0, waited), {"outcome": get_outcome(message)})


def get_outcome(message: Message) -> str:
    """confirmed, rejected or cancelled; `timed-out` when no decision on credit came in time."""
    if message.type == "order-rejected":
        event = CODEC.read(message)
        if isinstance(event, OrderRejected) and event.reason == TIMED_OUT:
            return TIMED_OUT
    return message.type.removeprefix("order-")
