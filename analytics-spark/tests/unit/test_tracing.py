"""A batch is a trace of its own; an order's trace shows that the order reached the table."""

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from analytics_spark.job import tracing
from analytics_spark.job.tracing import SampledOrder
from shared.runtime import telemetry
from test_support.analytics.histories import HOUR

ORDERS = [
    SampledOrder(
        traceparent=f"00-{number:032x}-{number:016x}-01", order_id=f"order {number}", hour=HOUR
    )
    for number in range(1, 101)
]


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

    assert len(orders) == len(ORDERS)
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


@pytest.mark.parametrize(("is_exported", "flushes"), [(True, 10), (False, 1)])
def test_spans_are_exported_on_the_way_while_there_is_a_collector(
    spans: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
    is_exported: bool,
    flushes: int,
) -> None:
    called: list[int] = []

    def flush() -> bool:
        called.append(1)
        return is_exported

    monkeypatch.setattr(tracing, "SPANS_EXPORTED_MAX", len(ORDERS) // 10)
    monkeypatch.setattr(telemetry, "flush", flush)

    _, orders = merged(spans)

    assert len(called) == flushes
    assert len(orders) == len(ORDERS)


def test_a_batch_ignores_the_span_around_it(spans: InMemorySpanExporter) -> None:
    with telemetry.tracer.start_as_current_span("around"), tracing.batch_span(1, []) as batch:
        assert tracing.get_trace_id(batch) == f"{batch.get_span_context().trace_id:032x}"

    inner, around = spans.get_finished_spans()
    assert inner.context.trace_id != around.context.trace_id
