"""The bound of traces that a process begins: an order has a whole trace or none."""

import time
from collections.abc import Callable, Sequence

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes


class RateLimited(Sampler):
    """Records at most `per_second` of the traces that `inner` would record, and as many at once.

    Only the begin of a trace is decided on. What follows from it is recorded with it, or the trace
    would have gaps: processes further on have room for this many (`job.tracing`).
    """

    def __init__(
        self, inner: Sampler, per_second: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inner = inner
        self._per_second = per_second
        self._clock = clock
        self._left = per_second
        self._counted_at = clock()

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        result = self._inner.should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )
        parent = trace.get_current_span(parent_context).get_span_context()
        if result.decision is not Decision.RECORD_AND_SAMPLE or parent.is_valid or self._take():
            return result
        return SamplingResult(Decision.DROP, trace_state=result.trace_state)

    def _take(self) -> bool:
        now = self._clock()
        earned = (now - self._counted_at) * self._per_second
        self._left, self._counted_at = min(self._per_second, self._left + earned), now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def get_description(self) -> str:
        return f"RateLimited({self._inner.get_description()}, {self._per_second:g}/s)"
