"""An order's trace has no gap; the batch that counts the order links to it, and it to the batch.

`make trace` prints it.
"""

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from analytics_spark.settings import JobSettings
from scripts import trace as trace_verb
from scripts.trace import NoTrace
from test_support.system.clients import Hometown, Json, rfc3339
from test_support.system.eventually import eventually
from test_support.system.sample import Sample, load
from test_support.system.stack import Stack
from test_support.system.telemetry import load_edges
from test_support.system.traces import Step, is_counted, loose_ends_of, spans_of

COUNTED = Step("analytics-job", "merge cell")
BATCH = Step("analytics-job", "merge batch")
STEPS = [step.operation for edge in load_edges("an order is confirmed") for step in edge]

pytestmark = pytest.mark.usefixtures("jaeger")


@pytest.fixture
def trace(hometown: Hometown, sample: Sample) -> Json:
    """The whole trace of one more order."""
    at = sample.at(3)
    order = hometown.place_order(sample.users["Jack"], [(sample.items["iphone"], 1)], at)
    traces = eventually(
        lambda: hometown.traces_of_order(order["order_id"]),
        lambda seen: len(seen) == 1 and is_counted(spans_of(seen[0])),
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


def test_the_verb_prints_a_new_trace_though_jaeger_was_unavailable_for_the_sample(
    stack: Stack, hometown: Hometown, hour: datetime
) -> None:
    with stack.stopped("jaeger"):
        load(hometown, hour)

    printed = stack.make_output("trace")

    assert ": confirmed, " in printed
    assert all(f" {step}\n" in printed for step in STEPS)


def test_the_order_of_the_verb_makes_no_other_order_late(
    stack: Stack, hometown: Hometown, sample: Sample
) -> None:
    late_before = hometown.status()["late_orders"]

    stack.make_output("trace")
    hometown.place_order(sample.users["Jack"], [(sample.items["iphone"], 1)], sample.at(0))

    eventually(
        lambda: hometown.hour(sample.hour)["quantity"], lambda seen: seen == 14, what="both orders"
    )
    assert hometown.status()["late_orders"] == late_before


@pytest.mark.parametrize(
    ("watermark", "hour", "chosen"),
    [
        (None, None, "2016-11-11T01:00:00Z"),
        (None, "2026-01-01T08:00:00Z", "2026-01-01T08:00:00Z"),
        ("2026-01-01T06:30:00Z", "2026-01-01T08:00:00Z", "2026-01-01T08:00:00Z"),
        ("2026-01-01T08:30:00Z", None, "2026-01-01T08:30:01Z"),
    ],
    ids=["an empty system", "a first batch", "an hour", "an hour before the watermark"],
)
def test_the_order_of_the_verb_is_in_the_newest_hour(
    watermark: str | None, hour: str | None, chosen: str
) -> None:
    hometown: Any = SimpleNamespace(
        status=lambda: {"watermark": watermark, "lag": {}},
        list_hours=lambda **query: {
            "hours": [{"hour": hour}] if hour and hour >= query.get("from", "") else []
        },
    )

    assert rfc3339(trace_verb.choose_time(hometown)) == chosen


def test_the_order_of_the_verb_does_not_make_the_sample_late() -> None:
    """It is the first order of a fresh system."""
    lateness = JobSettings.model_fields["lateness_seconds"].default

    assert timedelta(seconds=lateness) > trace_verb.AFTER_THE_SAMPLE


def test_the_verb_prints_a_trace_by_its_id_with_attributes(stack: Stack, trace: Json) -> None:
    printed = stack.make_output("trace", f"id={trace['traceID']}")

    assert f"/{trace['traceID']}\n" in printed
    assert all(f" {step}" in printed for step in STEPS)
    assert "  app.event.type=order-placed" in printed


def test_the_verb_waits_until_the_order_is_counted(
    hometown: Hometown, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trace_verb, "SETTLED_SECONDS", 0)

    trace_verb.show_new(hometown)

    assert "merge cell" in capsys.readouterr().out


def test_the_verb_prints_the_part_of_a_trace_that_there_is(
    stack: Stack,
    hometown: Hometown,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(trace_verb, "COUNTED_SECONDS_MAX", 5)

    with (
        stack.stopped("analytics-job"),
        pytest.raises(NoTrace, match="the order is confirmed, and not counted"),
    ):
        trace_verb.show_new(hometown)

    printed = capsys.readouterr().out
    assert "POST /v1/orders" in printed
    assert "merge cell" not in printed


@pytest.mark.parametrize(
    ("trace_id", "reason"),
    [
        ("0190A0F4", "'0190A0F4' is not a trace id"),
        (
            "0af7651916cd43dd8448eb211c80319c",
            "Jaeger has no trace 0af7651916cd43dd8448eb211c80319c",
        ),
    ],
)
def test_the_verb_refuses_an_id_without_a_trace(stack: Stack, trace_id: str, reason: str) -> None:
    ended = stack.make("trace", f"id={trace_id}")

    assert ended.returncode != 0
    assert f"hometown: {reason}" in ended.stderr


def test_the_verb_has_no_trace_while_jaeger_is_unavailable(
    stack: Stack, hometown: Hometown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_verb, "JAEGER_SECONDS_MAX", 1)
    orders_before = hometown.list_orders()

    with (
        stack.stopped("jaeger"),
        pytest.raises(NoTrace, match="Jaeger does not respond within 1 s"),
    ):
        trace_verb.show_new(hometown)

    assert hometown.list_orders() == orders_before
