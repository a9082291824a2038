"""A process begins a bounded number of traces, and records all that follows from one."""

from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, DEFAULT_ON, Decision, Sampler
from opentelemetry.trace import SpanKind

from shared.runtime import telemetry
from shared.runtime.trace_rate import RateLimited

RECORDED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def begin(sampler: Sampler, traceparent: str | None = None) -> bool:
    """Whether a span is recorded."""
    context = telemetry.extract({"traceparent": traceparent} if traceparent else {})
    result = sampler.should_sample(context, trace.INVALID_TRACE_ID + 1, "a", SpanKind.SERVER)
    return result.decision is Decision.RECORD_AND_SAMPLE


def test_as_many_traces_begin_as_are_allowed() -> None:
    clock = Clock()
    sampler = RateLimited(DEFAULT_ON, 10, clock)

    assert [begin(sampler) for _ in range(12)] == [True] * 10 + [False] * 2
    clock.now = 0.5
    assert [begin(sampler) for _ in range(6)] == [True] * 5 + [False]
    clock.now = 60
    assert sum(begin(sampler) for _ in range(100)) == 10


def test_what_follows_from_a_recorded_trace_is_always_recorded() -> None:
    sampler = RateLimited(DEFAULT_ON, 1, Clock())

    assert begin(sampler)
    assert not begin(sampler)
    assert all(begin(sampler, RECORDED) for _ in range(100))


def test_what_is_not_sampled_uses_nothing_up() -> None:
    sampler = RateLimited(ALWAYS_OFF, 10, Clock())

    assert not any(begin(sampler) for _ in range(100))
    assert sampler._left == 10


def test_the_description_names_both() -> None:
    assert RateLimited(ALWAYS_OFF, 10).get_description() == "RateLimited(AlwaysOffSampler, 10/s)"
