"""A process begins a bounded number of traces, and records all that follows from one."""

from collections.abc import Sequence

from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, DEFAULT_ON, Decision, Sampler
from opentelemetry.trace import Link, SpanKind

from shared.runtime import telemetry
from shared.runtime.trace_rate import UNRECORDED, RateLimited
from test_support.counted import counting

RECORDED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNRECORDED_TRACE = RECORDED[:-2] + "00"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def is_recorded(
    sampler: Sampler,
    traceparent: str | None = None,
    kind: SpanKind = SpanKind.SERVER,
    links: Sequence[Link] = (),
) -> bool:
    """Whether a span is recorded, inside of what `traceparent` names."""
    context = telemetry.extract({"traceparent": traceparent} if traceparent else {})
    result = sampler.should_sample(context, 1, "a", kind, links=links)
    return result.decision is Decision.RECORD_AND_SAMPLE


def test_as_many_traces_begin_as_are_allowed() -> None:
    clock = Clock()
    sampler = RateLimited(DEFAULT_ON, 10, clock)

    assert [is_recorded(sampler) for _ in range(12)] == [True] * 10 + [False] * 2
    clock.now = 0.5
    assert [is_recorded(sampler) for _ in range(6)] == [True] * 5 + [False]
    clock.now = 60
    assert sum(is_recorded(sampler) for _ in range(100)) == 10


def test_less_than_one_trace_in_a_second_is_one_now_and_then() -> None:
    clock = Clock()
    sampler = RateLimited(DEFAULT_ON, 0.5, clock)

    assert [is_recorded(sampler) for _ in range(2)] == [True, False]
    clock.now = 1
    assert not is_recorded(sampler)
    clock.now = 2
    assert is_recorded(sampler)


def test_what_is_not_recorded_for_that_reason_is_counted() -> None:
    sampler = RateLimited(DEFAULT_ON, 1, Clock())

    with counting(UNRECORDED) as counted:
        for _ in range(3):
            is_recorded(sampler)

    assert counted == {(): 2}


def test_what_follows_from_a_recorded_trace_is_always_recorded() -> None:
    sampler = RateLimited(DEFAULT_ON, 1, Clock())

    assert is_recorded(sampler)
    assert not is_recorded(sampler)
    assert all(is_recorded(sampler, RECORDED, SpanKind.CONSUMER) for _ in range(100))


def test_a_batch_is_recorded_with_the_traces_that_it_links_to() -> None:
    sampler = RateLimited(ALWAYS_OFF, 1, Clock())

    links = [telemetry.link_to(each) for each in (UNRECORDED_TRACE, RECORDED)]
    assert all(is_recorded(sampler, None, SpanKind.CLIENT, links) for _ in range(100))
    assert not is_recorded(sampler, None, SpanKind.CLIENT, links[:1])
    assert not is_recorded(sampler, UNRECORDED_TRACE, SpanKind.CLIENT, links)


def test_callers_cannot_ask_for_more_traces() -> None:
    sampler = RateLimited(DEFAULT_ON, 10, Clock())

    assert sum(is_recorded(sampler, RECORDED) for _ in range(100)) == 10


def test_what_is_not_sampled_uses_nothing_up() -> None:
    sampler = RateLimited(ALWAYS_OFF, 10, Clock())

    assert not any(is_recorded(sampler) for _ in range(100))
    assert sampler._left == 10


def test_the_description_names_both() -> None:
    assert RateLimited(ALWAYS_OFF, 10).get_description() == "RateLimited(AlwaysOffSampler, 10/s)"
