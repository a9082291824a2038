"""A batch is a trace of its own; an order's trace shows that the order reached the table."""

import pyarrow as pa
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import INVALID_SPAN

from analytics_spark.job import tracing
from analytics_spark.job.orders import SAMPLES
from shared.runtime import telemetry
from test_support.analytics.histories import HOUR

ORDERS = pa.Table.from_pylist(
    [
        {
            "traceparent": f"00-{number:032x}-{number:016x}-01",
            "order_id": f"order {number}",
            "ordered_at": round((HOUR.timestamp() + number) * 1_000),
        }
        for number in range(1, 101)
    ],
    SAMPLES,
)


def merged(spans: InMemorySpanExporter) -> tuple[ReadableSpan, list[ReadableSpan]]:
    """The span of a batch with all the orders, and the spans of the orders."""
    with tracing.batch_span(7, ORDERS) as batch:
        pass
    tracing.record_counted(7, ORDERS, batch)
    first, *others = spans.get_finished_spans()
    return first, others


def test_a_batch_has_no_parent_and_at_most_64_links(spans: InMemorySpanExporter) -> None:
    batch, _ = merged(spans)

    assert batch.parent is None
    assert [link.context.trace_id for link in batch.links] == list(range(1, 65))


def test_a_counted_order_is_a_span_in_its_own_trace(spans: InMemorySpanExporter) -> None:
    batch, orders = merged(spans)

    order = orders[0]
    assert order.context.trace_id == 1
    assert order.parent is not None
    assert order.parent.span_id == 1
    assert [link.context.trace_id for link in order.links] == [batch.context.trace_id]
    assert order.attributes == {
        tracing.ORDER_ID: "order 1",
        tracing.CELL: "2016-11-11T00:00:00Z",
        tracing.BATCH_ID: 7,
    }


def test_every_order_has_its_span(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "CHUNK", 7)
    _, orders = merged(spans)

    assert [order.context.trace_id for order in orders] == list(range(1, ORDERS.num_rows + 1))


def test_a_batch_that_was_applied_before_a_crash_gives_its_orders_the_same_spans(
    spans: InMemorySpanExporter,
) -> None:
    _, orders = merged(spans)
    spans.clear()
    _, again = merged(spans)

    ids = [order.context.span_id for order in orders]
    assert [order.context.span_id for order in again] == ids
    assert len({*ids}) == ORDERS.num_rows


def test_the_spans_of_orders_are_exported_before_spark_goes_on(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported: list[int] = []
    monkeypatch.setattr(
        telemetry, "flush", lambda: exported.append(len(spans.get_finished_spans()))
    )

    merged(spans)
    tracing.record_counted(8, ORDERS[:0], INVALID_SPAN)

    assert exported == [1 + ORDERS.num_rows]


def test_a_batch_ignores_the_span_around_it(spans: InMemorySpanExporter) -> None:
    with (
        telemetry.tracer.start_as_current_span("around"),
        tracing.batch_span(1, ORDERS[:0]) as batch,
    ):
        assert tracing.get_trace_id(batch) == f"{batch.get_span_context().trace_id:032x}"

    inner, around = spans.get_finished_spans()
    assert inner.context.trace_id != around.context.trace_id
