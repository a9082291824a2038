"""Spans of a batch: one trace for the batch itself, one span in the trace of each sampled order."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind

from shared.runtime import telemetry

BATCH_ID = "app.spark.batch_id"
CELL = "app.cell"
ORDER_ID = "app.order.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledOrder:
    """An order counted in a batch, whose trace is recorded."""

    traceparent: str
    order_id: str
    hour: datetime


@contextmanager
def batch_span(
    batch_id: int, orders: Sequence[SampledOrder], began_at: int | None = None
) -> Iterator[Span]:
    """The span around one batch: a trace of its own, because a batch has many parents.

    `began_at` is in nanoseconds since 1970, by default now: the sampled orders are known only
    after the operator has run.
    """
    with telemetry.current_span(
        "merge batch",
        context=Context(),
        kind=SpanKind.CONSUMER,
        start_time=began_at,
        links=[telemetry.link_to(order.traceparent) for order in orders[: telemetry.LINKS_MAX]],
        attributes={
            BATCH_ID: batch_id,
            telemetry.MESSAGING_SYSTEM: "kafka",
            telemetry.MESSAGING_OPERATION_TYPE: "process",
        },
    ) as span:
        yield span


def get_trace_id(span: Span) -> str:
    return trace.format_trace_id(span.get_span_context().trace_id)


def record_counted(batch_id: int, orders: Sequence[SampledOrder], batch: Span) -> None:
    """Add a span to each order's own trace, with a link to the batch. Links from the batch alone
    cannot be followed from the order."""
    for order in orders[: telemetry.LINKS_MAX]:
        telemetry.tracer.start_span(
            "merge cell",
            context=telemetry.extract({telemetry.TRACEPARENT: order.traceparent}),
            kind=SpanKind.CONSUMER,
            links=[Link(batch.get_span_context())],
            attributes={
                ORDER_ID: order.order_id,
                CELL: order.hour.strftime("%Y-%m-%dT%H:%M:%SZ"),
                BATCH_ID: batch_id,
            },
        ).end()
