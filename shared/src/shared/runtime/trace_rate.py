"""The bound of traces that a process begins: what follows from a request has a whole trace or none.

The sampler of Jaeger's clients with a constant rate did the same
(https://www.jaegertracing.io/docs/1.76/architecture/sampling/#remote-sampling, "rate limiting").
"""

import time
from collections.abc import Callable, Sequence

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes

from shared.runtime import metrics

UNRECORDED = metrics.Counter(
    "hometown.trace.unrecorded",
    "{trace}",
    "Traces that were not recorded because TRACES_PER_SECOND_MAX of this process had begun",
)


class RateLimited(Sampler):
    """Records at most `per_second` of the traces that `inner` would record, and as many at once.

    It decides where a trace begins, and where a request brings one: callers can ask for as many as
    they like. What follows inside of a trace is recorded as `inner` decides, or it would have gaps.
    A trace of its own that links to a recorded one, as that of a batch, is recorded with it.
    """

    def __init__(
        self, inner: Sampler, per_second: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inner = inner
        self._per_second = per_second
        self._most = max(per_second, 1.0)
        self._clock = clock
        self._left = self._most
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
        is_inside = trace.get_current_span(parent_context).get_span_context().is_valid
        if not is_inside and any(link.context.trace_flags.sampled for link in links or ()):
            return SamplingResult(Decision.RECORD_AND_SAMPLE)
        result = self._inner.should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )
        if result.decision is not Decision.RECORD_AND_SAMPLE:
            return result
        if (is_inside and kind is not SpanKind.SERVER) or self._take():
            return result
        UNRECORDED.add(1)
        return SamplingResult(Decision.DROP, trace_state=result.trace_state)

    def _take(self) -> bool:
        now = self._clock()
        earned = (now - self._counted_at) * self._per_second
        self._left, self._counted_at = min(self._most, self._left + earned), now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def get_description(self) -> str:
        return f"RateLimited({self._inner.get_description()}, {self._per_second:g}/s)"
