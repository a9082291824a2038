"""Without a collector there are no spans to be made, and a trace is still one trace."""

import json
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanKind, StatusCode

from shared.runtime import telemetry

# In a process of its own: a process has one provider for its whole life.
SCRIPT = """
from shared.runtime import telemetry
from shared.runtime.settings import ProcessSettings
settings = ProcessSettings(otel_exporter_otlp_endpoint={endpoint!r})
with telemetry.configured("test", settings), telemetry.tracer.start_as_current_span("a") as a:
    with telemetry.tracer.start_as_current_span("b"):
        traceparent = telemetry.current_traceparent()
same = format(a.get_span_context().trace_id, "032x") in traceparent
print("same trace" if same else "another", telemetry.is_sampled(traceparent))
"""


def run(script: str, **values: object) -> str:
    command = [sys.executable, "-c", script.format(**values)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_without_a_collector_nothing_is_recorded_and_the_context_travels() -> None:
    assert run(SCRIPT, endpoint=None) == "same trace False"


def test_with_a_collector_every_trace_is_recorded() -> None:
    assert run(SCRIPT, endpoint="http://127.0.0.1:1") == "same trace True"


BOUNDED = """
from shared.runtime import telemetry
from shared.runtime.settings import ProcessSettings
settings = ProcessSettings(
    otel_exporter_otlp_endpoint="http://127.0.0.1:1", traces_per_second_max=0.001
)
with telemetry.configured("test", settings):
    spans = [telemetry.start_span_of("an event", "send").get_span_context() for _ in range(3)]
print([span.trace_flags.sampled for span in spans], len({{span.span_id for span in spans}}))
"""


def test_a_process_bounds_its_traces_and_knows_the_spans_of_things() -> None:
    assert run(BOUNDED) == "[True, False, False] 1"


FLOOD = """
from shared.runtime import logs, telemetry
from shared.runtime.settings import LogSettings, ProcessSettings
logs.configure(LogSettings())
with telemetry.configured("test", ProcessSettings()):
    for _ in range(100):
        telemetry.extract({"traceparent": "00-" + "a" * 600})
        telemetry.extract({"traceparent": RECORDED, "tracestate": "no state"})
        telemetry.extract({"traceparent": RECORDED, "tracestate": "a=b" * 600})
"""


def test_malformed_headers_of_callers_fill_no_log() -> None:
    script = FLOOD.replace("RECORDED", repr(RECORDED))

    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert sorted(json.loads(line)["logger"] for line in ended.stderr.splitlines()) == [
        "opentelemetry.trace.propagation.tracecontext",
        "opentelemetry.trace.span",
    ]


RECORDED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNRECORDED = RECORDED[:-2] + "00"


def test_a_thing_has_one_span_of_each_name(spans: InMemorySpanExporter) -> None:
    def start(thing: str, name: str) -> int:
        return telemetry.start_span_of(thing, name).get_span_context().span_id

    assert start("a", "send") == start("a", "send")
    assert len({start("a", "send"), start("b", "send"), start("a", "merge")}) == 3
    others = [telemetry.tracer.start_span("send") for _ in range(2)]
    assert len({each.get_span_context().span_id for each in others}) == 2


def test_a_span_after_a_message_of_a_recorded_trace_is_a_child(spans: InMemorySpanExporter) -> None:
    with telemetry.span_after(RECORDED, "process", SpanKind.CONSUMER):
        pass

    [span] = spans.get_finished_spans()
    assert span.parent is not None
    assert telemetry.traceparent_of(NonRecordingSpan(span.parent)) == RECORDED


@pytest.mark.parametrize("flags", ["00", "02"])
def test_a_span_after_a_message_of_another_trace_is_passed_on(
    spans: InMemorySpanExporter, flags: str
) -> None:
    """The second bit of the flags says that the id is random, as this SDK's is."""
    traceparent = UNRECORDED[:-2] + flags
    with telemetry.span_after(traceparent, "process", SpanKind.CONSUMER) as span:
        assert telemetry.current_traceparent() == traceparent
        assert not span.is_recording()

    assert spans.get_finished_spans() == ()


def test_of_an_error_a_span_has_its_class_and_no_text(spans: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="Jack"), telemetry.inner_span("append"):
        raise ValueError("Jack lives in BJ")

    [span] = spans.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes == {telemetry.ERROR_TYPE: "ValueError"}
    assert "Jack" not in span.to_json()


@pytest.mark.parametrize(
    "traceparent", [None, "", "nonsense", UNRECORDED.upper(), f"00-{'0' * 32}-{'0' * 16}-00"]
)
def test_a_span_after_a_message_without_a_trace_begins_one(
    spans: InMemorySpanExporter, traceparent: str | None
) -> None:
    with telemetry.span_after(traceparent, "process", SpanKind.CONSUMER):
        pass

    [span] = spans.get_finished_spans()
    assert span.parent is None
