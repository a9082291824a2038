"""How long orders wait for the decision on them, as a metric."""

from collections.abc import Sequence

from orders_svc.order.contract import CODEC, TOPIC
from orders_svc.order.events import OrderRejected
from orders_svc.order.order import TIMED_OUT
from shared.messaging.messages import Message
from shared.runtime import metrics
from shared.runtime.identifiers import to_timestamp

DURATION = metrics.Histogram(
    "hometown.order.decision.duration",
    "s",
    "From the placing of an order to the decision: confirmed, rejected, timed-out or cancelled",
    ["outcome"],
)
DECISION_VERSION = 2
"""Of the event after the placing; an order that was confirmed can be cancelled later."""


def record(messages: Sequence[Message]) -> None:
    """Record the time of each decision among messages that were applied: of all orders again when
    they are published again after a loss."""
    for message in messages:
        if message.topic == TOPIC and message.stream_version == DECISION_VERSION:
            waited = message.time.timestamp() - to_timestamp(message.stream_id)
            DURATION.record(max(0.0, waited), get_outcome(message))


def get_outcome(message: Message) -> str:
    """Return what was decided; `timed-out` when no decision on credit came in time."""
    if message.type == "order-rejected":
        event = CODEC.read(message)
        if isinstance(event, OrderRejected) and event.reason == TIMED_OUT:
            return TIMED_OUT
    return message.type.removeprefix("order-")
