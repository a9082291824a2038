"""No span is lost while the collector takes them; while it does not, they take no memory."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext

from shared.runtime import span_queue
from shared.runtime.span_queue import SPANS, SpanQueue
from test_support.counted import counting
from test_support.system.eventually import eventually
from test_support.waits import HANGS_AFTER_SECONDS

ROOM = 600
"""More than one request takes."""

End = Callable[[int], None]


class Ended(SpanProcessor):
    """Knows what has ended, without keeping it."""

    def __init__(self) -> None:
        self.spans: list[weakref.ref[ReadableSpan]] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(weakref.ref(span))

    @property
    def kept(self) -> int:
        gc.collect()
        return sum(each() is not None for each in self.spans)


class Collector(SpanExporter):
    """Takes spans, or refuses them; it is silent while `speaks` is not set."""

    def __init__(self) -> None:
        self.speaks = threading.Event()
        self.speaks.set()
        self.refuses = False
        self.taken = 0
        self.requests = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.requests += 1
        assert self.speaks.wait(HANGS_AFTER_SECONDS)
        if self.refuses:
            return SpanExportResult.FAILURE
        self.taken += len(spans)
        return SpanExportResult.SUCCESS


@pytest.fixture
def collector() -> Collector:
    return Collector()


@pytest.fixture
def ended() -> Ended:
    return Ended()


@pytest.fixture
def provider(
    collector: Collector, ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TracerProvider]:
    """Spans that end are in a queue with little room."""
    monkeypatch.setattr(span_queue, "SPANS_MAX", ROOM)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SpanQueue(collector))
    provider.add_span_processor(ended)
    yield provider
    collector.speaks.set()
    provider.shutdown()


@pytest.fixture
def end(provider: TracerProvider) -> End:
    """Ends so many spans."""

    def end(count: int) -> None:
        for _ in range(count):
            provider.get_tracer("test").start_span("a").end()

    return end


def test_the_end_of_a_span_waits_for_room(
    provider: TracerProvider, collector: Collector, end: End
) -> None:
    with counting(SPANS) as counted:
        end(20 * ROOM)
        assert provider.force_flush()

    assert collector.taken == 20 * ROOM
    assert counted == {("exported",): 20 * ROOM}


def test_a_silent_collector_is_waited_for_once(
    collector: Collector, end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_queue, "ROOM_SECONDS_MAX", 0.05)
    waits = []
    acquire = threading.Semaphore.acquire

    def acquire_noted(room: threading.Semaphore, *, timeout: float) -> bool:
        has_room = acquire(room, timeout=timeout)
        if not has_room:
            waits.append(timeout)
        return has_room

    monkeypatch.setattr(threading.Semaphore, "acquire", acquire_noted)
    collector.speaks.clear()

    with counting(SPANS) as counted:
        end(ROOM + 100)

    assert counted == {("dropped",): 100}
    assert waits == [0.05, *[0] * 99]


def test_an_unavailable_collector_costs_no_memory(
    collector: Collector, end: End, ended: Ended
) -> None:
    collector.speaks.clear()
    end(ROOM)
    kept_while_silent = ended.kept
    collector.refuses = True
    collector.speaks.set()
    end(20 * ROOM)

    assert kept_while_silent == ROOM
    assert ended.kept <= ROOM


def test_all_spans_are_exported_again_once_the_collector_is_back(
    provider: TracerProvider, collector: Collector, end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_queue, "ROOM_SECONDS_MAX", 0.0)
    collector.speaks.clear()
    end(ROOM + 1)
    monkeypatch.undo()
    collector.refuses = True
    collector.speaks.set()
    eventually(lambda: collector.requests, lambda made: made > 1, what="a request that is refused")
    collector.refuses = False
    end(512)  # a whole request, which is made at once
    eventually(provider.force_flush, lambda is_taken: is_taken, what="spans that are taken")

    before = collector.taken
    end(20 * ROOM)

    assert provider.force_flush()
    assert collector.taken - before == 20 * ROOM


def test_a_span_that_is_not_sampled_takes_no_room(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_queue, "SPANS_MAX", ROOM)
    queue = SpanQueue(collector)
    unsampled = ReadableSpan("a", SpanContext(1, 1, is_remote=False))
    with counting(SPANS) as counted:
        for _ in range(2 * ROOM):
            queue.on_end(unsampled)
        queue.shutdown()

    assert counted == {}


@pytest.fixture
def soon_refused(collector: Collector, end: End) -> None:
    """Fill the queue; its first request has no answer, and is refused in a moment."""
    collector.speaks.clear()
    end(ROOM)
    collector.refuses = True
    threading.Timer(0.05, collector.speaks.set).start()


@pytest.mark.usefixtures("soon_refused")
def test_nothing_is_tried_after_a_failure_while_all_is_awaited(
    provider: TracerProvider, collector: Collector
) -> None:
    assert not provider.force_flush()

    assert collector.requests == 1
    assert not provider.force_flush()
    assert collector.requests == 1


@pytest.mark.usefixtures("soon_refused")
def test_a_process_ends_soon_without_a_collector(
    provider: TracerProvider, collector: Collector
) -> None:
    provider.shutdown()

    assert collector.requests == 1


def test_at_its_end_a_process_tries_once_more(
    provider: TracerProvider, collector: Collector, end: End
) -> None:
    collector.refuses = True
    end(1)
    assert not provider.force_flush()
    collector.refuses = False
    end(100)

    provider.shutdown()

    assert collector.taken == 100
