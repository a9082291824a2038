"""Spans on their way to the collector: none is lost while it takes them, and memory is bounded."""

from collections.abc import Sequence
from threading import Semaphore

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from shared.runtime import metrics

SPANS_MAX = 4_096
"""In the queue, and in the request under way: 25 MB, as a span with its attributes takes 6 kB."""
REQUEST_SECONDS_MAX = 2
"""A collector that accepts and stays silent must not hold up the end of a process for longer."""
ROOM_SECONDS_MAX = 1.0
"""How long the end of a span waits for room, once: until the collector takes spans again, those for
which there is no room are dropped."""
DELAY_SECONDS = 0.5
"""How long a span waits for others that are exported with it."""

SPANS = metrics.Counter(
    "hometown.trace.spans",
    "{span}",
    "Spans that have ended: `exported`, `failed` if the collector did not take them, or `dropped`"
    " because too many waited for it",
    ["outcome"],
)


class SpanQueue(BatchSpanProcessor):
    """Exports spans in batches; the end of one waits for room while the collector takes them.

    The SDK's own queue drops the oldest span when it is full: a relay, a worker or the job that
    catches up ends thousands in a second.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._room = Semaphore(SPANS_MAX)
        self._exporter = Exporter(exporter, self._room)
        super().__init__(
            self._exporter,
            max_queue_size=SPANS_MAX,
            schedule_delay_millis=DELAY_SECONDS * 1_000,
        )

    def on_end(self, span: ReadableSpan) -> None:
        if not (span.context and span.context.trace_flags.sampled):
            return
        if self._room.acquire(timeout=ROOM_SECONDS_MAX if self._exporter.is_waited_for else 0):
            super().on_end(span)
        else:
            self._exporter.is_waited_for = False
            SPANS.add(1, "dropped")

    def force_flush(self, timeout_millis: int | None = None) -> bool:
        """Export what has ended; whether the collector took it. Nothing is tried if it did not take
        the spans before."""
        if not self._exporter.is_taken:
            return False
        self._exporter.flushing += 1
        try:
            super().force_flush(timeout_millis)
        finally:
            self._exporter.flushing -= 1
        return self._exporter.is_taken

    def shutdown(self) -> None:
        """Export what has ended, with one request more if the collector did not take the last."""
        self._exporter.is_taken = True
        self._exporter.flushing += 1
        super().shutdown()  # type: ignore[no-untyped-call]


class Exporter(SpanExporter):
    """Passes spans on to another exporter; makes room, and knows whether they were taken.

    While the export of all is waited for, nothing is tried after a failure: a collector that
    is silent would hold up each of eight requests.
    """

    def __init__(self, inner: SpanExporter, room: Semaphore) -> None:
        self._inner = inner
        self._room = room
        self.is_taken = True
        self.is_waited_for = True
        """Whether the end of a span waits for room."""
        self.flushing = 0
        """How many wait for the export of all."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            if self.is_taken or not self.flushing:
                result = self._inner.export(spans)
        finally:
            self.is_taken = self.is_waited_for = result is SpanExportResult.SUCCESS
            SPANS.add(len(spans), "exported" if self.is_taken else "failed")
            self._room.release(len(spans))
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


def create_span_queue(otlp_endpoint: str) -> SpanQueue:
    """A queue to an OTLP/HTTP receiver at this base address."""
    address = f"{otlp_endpoint.rstrip('/')}/v1/traces"
    return SpanQueue(OTLPSpanExporter(endpoint=address, timeout=REQUEST_SECONDS_MAX))
