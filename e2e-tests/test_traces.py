"""An order's trace has no gap; the batch that counts the order links to it, and it to the batch."""

import pytest

from scripts.demo import counted
from test_support.system.clients import Hometown, Json
from test_support.system.eventually import eventually
from test_support.system.sample import Sample
from test_support.system.stack import Stack
from test_support.system.traces import Step, loose_ends_of, spans_of

COUNTED = Step("analytics-job", "merge cell")
BATCH = Step("analytics-job", "merge batch")

pytestmark = pytest.mark.usefixtures("jaeger")


@pytest.fixture
def trace(hometown: Hometown, sample: Sample) -> Json:
    """The whole trace of one more order."""
    at = sample.at(3)
    order = hometown.place_order(sample.users["Jack"], [(sample.items["iphone"], 1)], at)
    traces = eventually(
        lambda: hometown.traces_of_order(order["order_id"]),
        lambda seen: len(seen) == 1 and counted(seen[0]),
        what="the trace of an order up to its cell",
    )
    return traces[0]


def test_the_trace_has_no_loose_ends(trace: Json) -> None:
    """Every span but the first has a parent in the trace."""
    [first] = loose_ends_of(spans_of(trace))

    assert first.step == Step("orders-api", "POST /v1/orders")


def test_the_batch_that_counted_the_order_links_to_it(hometown: Hometown, trace: Json) -> None:
    [cell] = [span for span in spans_of(trace) if span.step == COUNTED]
    [(batch_trace_id, _)] = cell.links

    batch = eventually(
        lambda: hometown.trace(batch_trace_id), lambda found: found is not None, what="the batch"
    )
    assert batch is not None
    [span] = [span for span in spans_of(batch) if span.step == BATCH]
    assert trace["traceID"] in {trace_id for trace_id, _ in span.links}


def test_the_trace_of_the_batch_is_stored_with_its_epoch(stack: Stack, trace: Json) -> None:
    [cell] = [span for span in spans_of(trace) if span.step == COUNTED]
    [(batch_trace_id, _)] = cell.links

    stored = "SELECT batch_id FROM batches WHERE trace_id = $1"
    assert len(stack.fetch("analytics", stored, batch_trace_id)) == 1
