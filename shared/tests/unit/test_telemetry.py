"""Without a collector there are no spans to be made, and a trace is still one trace."""

import subprocess
import sys

# In a process of its own: a process has one provider for its whole life.
SCRIPT = """
from shared.runtime import telemetry
with telemetry.configured("test", {endpoint!r}), telemetry.tracer.start_as_current_span("a") as a:
    with telemetry.tracer.start_as_current_span("b"):
        traceparent = telemetry.current_traceparent()
same = format(a.get_span_context().trace_id, "032x") in traceparent
print("same trace" if same else "another", telemetry.is_sampled(traceparent))
"""


def printed(endpoint: str | None) -> str:
    command = [sys.executable, "-c", SCRIPT.format(endpoint=endpoint)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_without_a_collector_nothing_is_recorded_and_the_context_travels() -> None:
    assert printed(None) == "same trace False"


def test_with_a_collector_every_trace_is_recorded() -> None:
    assert printed("http://127.0.0.1:1") == "same trace True"
