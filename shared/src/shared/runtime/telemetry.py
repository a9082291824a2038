"""Traces and metrics of a process, and trace context as data that travels in rows and headers."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from shared.runtime import metrics
from shared.runtime.settings import ProcessSettings
from shared.runtime.span_queue import create_span_queue
from shared.runtime.trace_rate import RateLimited

# Names of attributes. The messaging names still change from release to release of the semantic
# conventions (1.44 here), so they stand in this one place.
MESSAGING_SYSTEM = "messaging.system"
MESSAGING_OPERATION_NAME = "messaging.operation.name"
MESSAGING_OPERATION_TYPE = "messaging.operation.type"
MESSAGING_DESTINATION = "messaging.destination.name"
MESSAGING_PARTITION = "messaging.destination.partition.id"
MESSAGING_CONSUMER_GROUP = "messaging.consumer.group.name"
MESSAGING_KEY = "messaging.kafka.message.key"
MESSAGING_OFFSET = "messaging.kafka.offset"
MESSAGING_MESSAGE_ID = "messaging.message.id"
MESSAGING_BATCH_COUNT = "messaging.batch.message_count"
ERROR_TYPE = "error.type"
EVENT_TYPE = "app.event.type"
STREAM_ID = "app.stream.id"
STREAM_VERSION = "app.stream.version"

LINKS_MAX = 64
"""Links on one batch span; the SDK itself would keep 128."""

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
UNRECORDED = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f][02468ace])")
W3C = TraceContextTextMapPropagator()
"""Rows and records carry this form and no other."""

tracer = trace.get_tracer("hometown")

span_id: ContextVar[int | None] = ContextVar("span_id", default=None)
"""Of the span that `start_span_of` starts."""


class SpanIds(RandomIdGenerator):
    """Makes random ids, but for the span that `start_span_of` starts."""

    def generate_span_id(self) -> int:
        return span_id.get() or super().generate_span_id()


def start_span_of(thing: str, name: str, **options: Any) -> Span:
    """Start a span whose id follows from its name and the id of what it is about.

    A process that is killed loses spans, which other processes can know as their parent. When it
    does the same again, it has the same spans.
    """
    digest = blake2b(f"{name} {thing}".encode(), digest_size=8).digest()
    token = span_id.set(int.from_bytes(digest))
    try:
        return tracer.start_span(name, **options)
    finally:
        span_id.reset(token)


def configure(
    service_name: str, otlp_endpoint: str | None, traces_per_second_max: float
) -> TracerProvider:
    """Set the tracer provider of this process.

    Args:
        service_name: the name that Jaeger shows, e.g. `notes-api`.
        otlp_endpoint: base address of an OTLP/HTTP receiver. With None no trace is recorded, and
            trace context still travels. With one, OTEL_TRACES_SAMPLER says which are.
        traces_per_second_max: of those, how many begin in this process, and as many at once.

    The caller shuts the provider down, which sends what is left.
    """
    resource = metrics.create_resource(service_name)
    sampler = ALWAYS_OFF if otlp_endpoint is None else None
    provider = TracerProvider(sampler, resource, id_generator=SpanIds())
    if otlp_endpoint is not None:
        provider.sampler = RateLimited(provider.sampler, traces_per_second_max)
        provider.add_span_processor(create_span_queue(otlp_endpoint))
    trace.set_tracer_provider(provider)
    return provider


def flush() -> bool:
    """Export the spans that have ended, which can take seconds; False if the collector took no
    span the last time, and nothing was tried."""
    provider = trace.get_tracer_provider()
    return not isinstance(provider, TracerProvider) or provider.force_flush()


@contextmanager
def configured(service_name: str, settings: ProcessSettings) -> Iterator[None]:
    """Record traces and metrics for the length of a process."""
    provider = configure(
        service_name, settings.otel_exporter_otlp_endpoint, settings.traces_per_second_max
    )
    try:
        with metrics.configured(service_name, settings.otel_metrics_exporter):
            yield
    finally:
        provider.shutdown()


@contextmanager
def current_span(name: str, **options: Any) -> Iterator[Span]:
    """A span that is the current one inside the block, with the class of the error that ends it.

    The SDK would record the text of the error, which can quote what a person has entered.
    """
    with tracer.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False, **options
    ) as span:
        try:
            yield span
        except Exception as error:
            fail(span, type(error).__qualname__)
            raise


def fail(span: Span, error_type: str) -> None:
    """Mark a span as that of an error."""
    span.set_attribute(ERROR_TYPE, error_type)
    span.set_status(StatusCode.ERROR)


@contextmanager
def inner_span(name: str) -> Iterator[Span]:
    """A span inside the current one; the current one again where that is not recorded.

    A span that is not recorded costs a request that does little else a twentieth of its time.
    """
    with span_inside(trace.get_current_span(), name) as span:
        yield span


@contextmanager
def span_inside(parent: Span, name: str) -> Iterator[Span]:
    """`inner_span` of a span that need not be the current one."""
    context = parent.get_span_context()
    if context.is_valid and not context.trace_flags.sampled:
        yield parent
    else:
        with current_span(name, context=trace.set_span_in_context(parent)) as span:
            yield span


@contextmanager
def span_after(traceparent: str | None, name: str, kind: SpanKind) -> Iterator[Span]:
    """The current span for what a message causes, inside of the span that `traceparent` names.

    As `inner_span`, it is that span itself where its trace is not recorded: a message that is
    decided on in a batch costs twice as much otherwise.
    """
    if unrecorded := find_unrecorded(traceparent):
        with trace.use_span(unrecorded):
            yield unrecorded
    else:
        context = extract({TRACEPARENT: traceparent} if traceparent else {})
        with current_span(name, context=context, kind=kind) as span:
            yield span


def find_unrecorded(traceparent: str | None) -> Span | None:
    """The span that a `traceparent` names, if it is well-formed and its trace is not recorded."""
    found = UNRECORDED.fullmatch(traceparent or "")
    if found is None:
        return None
    trace_id, parent_id, flags = (int(each, 16) for each in found.groups())
    context = SpanContext(trace_id, parent_id, is_remote=True, trace_flags=TraceFlags(flags))
    return NonRecordingSpan(context) if context.is_valid else None


def extract(headers: Mapping[str, str]) -> Context:
    """The trace context that `headers` carry, with nothing of the caller's own in it."""
    return W3C.extract(headers, context=Context())


def current_traceparent() -> str | None:
    """The current span's context as a W3C `traceparent`, None outside any span."""
    return find_traceparent(trace.get_current_span())


def find_traceparent(span: Span) -> str | None:
    """`traceparent_of` a span; None when it is none."""
    return traceparent_of(span) if span.get_span_context().is_valid else None


def traceparent_of(span: Span) -> str:
    """A span's context as a `traceparent` (https://www.w3.org/TR/trace-context-1/#version-format)."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def ids_of(span: Span) -> dict[str, str]:
    """The ids under which a line of a log finds a recorded span; none when it is not recorded."""
    context = span.get_span_context()
    if not context.trace_flags.sampled:
        return {}
    return {
        "trace_id": trace.format_trace_id(context.trace_id),
        "span_id": trace.format_span_id(context.span_id),
    }


def ids_in(traceparent: str | None) -> dict[str, str]:
    """Find the `ids_of` the span that a `traceparent` names."""
    if traceparent is None or not is_sampled(traceparent):
        return {}
    return ids_of(NonRecordingSpan(span_context_of(traceparent)))


def is_sampled(traceparent: str | None) -> bool:
    """Whether the trace is recorded: the last flag bit of a `traceparent` (W3C Trace Context)."""
    return traceparent is not None and traceparent[-1:] in "13579bdf"


def span_context_of(traceparent: str) -> SpanContext:
    """The remote span that a `traceparent` names."""
    return trace.get_current_span(extract({TRACEPARENT: traceparent})).get_span_context()


def link_to(traceparent: str) -> Link:
    """A link to the span that a `traceparent` names."""
    return Link(span_context_of(traceparent))
