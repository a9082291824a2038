"""Spans of a batch: one trace for the batch itself, one span in the trace of each sampled order."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pyarrow as pa
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind

from analytics_spark.job.batch import EPOCH
from analytics_spark.job.cells import HOUR_MILLISECONDS
from shared.runtime import telemetry

CHUNK = 1_000
"""Orders that are objects of Python at a time."""

BATCH_ID = "app.spark.batch_id"
CELL = "app.cell"
ORDER_ID = "app.order.id"


@contextmanager
def batch_span(batch_id: int, orders: pa.Table, began_at: int | None = None) -> Iterator[Span]:
    """The span around one batch: a trace of its own, because a batch has many parents.

    `orders` are rows of `orders.SAMPLES`. `began_at` is in nanoseconds since 1970, by default now:
    the sampled orders are known only after the operator has run.
    """
    linked = orders["traceparent"][: telemetry.LINKS_MAX].to_pylist()
    with telemetry.current_span(
        "merge batch",
        context=Context(),
        kind=SpanKind.CONSUMER,
        start_time=began_at,
        links=[telemetry.link_to(traceparent) for traceparent in linked],
        attributes={
            BATCH_ID: batch_id,
            telemetry.MESSAGING_SYSTEM: "kafka",
            telemetry.MESSAGING_OPERATION_TYPE: "process",
        },
    ) as span:
        yield span


def get_trace_id(span: Span) -> str:
    return trace.format_trace_id(span.get_span_context().trace_id)


def record_counted(batch_id: int, orders: pa.Table, batch: Span) -> None:
    """Add a span to each order's own trace, with a link to the batch: the batch has room for few,
    and its links cannot be followed from the order.

    They are exported before the caller goes on: Spark does not run a batch again once it is done.
    One that it runs again gets the same spans, as the first ones can be lost in a crash.
    """
    for chunk in orders.to_batches(max_chunksize=CHUNK):
        for order in chunk.to_pylist():
            hours = timedelta(hours=order["ordered_at"] // HOUR_MILLISECONDS)
            telemetry.start_span_of(
                order["order_id"],
                "merge cell",
                context=telemetry.extract({telemetry.TRACEPARENT: order["traceparent"]}),
                kind=SpanKind.CONSUMER,
                links=[Link(batch.get_span_context())],
                attributes={
                    ORDER_ID: order["order_id"],
                    CELL: f"{EPOCH + hours:%Y-%m-%dT%H:%M:%SZ}",
                    BATCH_ID: batch_id,
                },
            ).end()
    if orders.num_rows:
        telemetry.flush()
