"""Metrics of a process: instruments that code records into, and their text for Prometheus.

An instrument is a constant of the module that records into it. `infra/observability/metrics.toml`
has all of them with their attributes: dashboards and alerts rely on it, and a test compares them.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock

from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Bounds of the buckets of a duration: from a request to an order that times out."""
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""Bounds of the buckets of a number of things in a batch."""

Reading = tuple[Mapping[str, str], float]
"""A value of a gauge, and its attributes."""


meter = metrics.get_meter("hometown")
"""Records nothing until `configured`, and nothing at all without an exporter."""

registry = CollectorRegistry()
"""What this process exposes."""


class Count:
    """A counter; Prometheus adds `_total` to its name.

    It is read when the process is asked for its metrics: a counter of the SDK costs 15 µs each time
    that something is counted, this one 1 µs.
    """

    def __init__(self, name: str, unit: str, description: str) -> None:
        self._values: Counter[tuple[tuple[str, str], ...]] = Counter()
        self._lock = Lock()
        meter.create_observable_counter(name, [self._observe], unit=unit, description=description)

    def add(self, number: int, attributes: Mapping[str, str] | None = None) -> None:
        with self._lock:
            self._values[tuple((attributes or {}).items())] += number

    def _observe(self, options: CallbackOptions) -> Iterable[Observation]:
        with self._lock:
            return [Observation(value, dict(labels)) for labels, value in self._values.items()]


def measure(name: str, unit: str, description: str, bounds: Sequence[float] = SECONDS) -> Histogram:
    """A histogram with the given upper bounds of its buckets."""
    return meter.create_histogram(
        name, unit=unit, description=description, explicit_bucket_boundaries_advisory=list(bounds)
    )


class Gauge:
    """Values that are read when the process is asked for its metrics; none until `set_reader`."""

    def __init__(self, name: str, unit: str, description: str) -> None:
        self._read: Callable[[], Iterable[Reading]] = tuple
        meter.create_observable_gauge(name, [self._observe], unit=unit, description=description)

    def set_reader(self, read: Callable[[], Iterable[Reading]]) -> None:
        """`read` must not wait: it runs in the event loop of the process."""
        self._read = read

    def _observe(self, options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, attributes) for attributes, value in self._read()]


CLOCK = Gauge("hometown.process.clock", "s", "The clock of the process, in seconds since 1970")
CLOCK.set_reader(lambda: [({}, time.time())])


def create_resource(service_name: str) -> Resource:
    """What metrics and traces of a process say of it."""
    return Resource.create({"service.name": service_name, "service.namespace": "hometown"})


@contextmanager
def configured(service_name: str, exporter: str) -> Iterator[None]:
    """Record metrics for the length of a process.

    Args:
        service_name: the name of the process, e.g. `notes-api`.
        exporter: `prometheus`, or `none` to record nothing.
    """
    if exporter == "none":
        yield
        return
    reader = PrometheusMetricReader(scope_info_enabled=False, registry=registry)
    provider = MeterProvider([reader], create_resource(service_name))
    metrics.set_meter_provider(provider)
    ProcessCollector(registry=registry)
    try:
        yield
    finally:
        provider.shutdown()


def expose() -> bytes:
    """All metrics of this process in the text format of Prometheus; empty without an exporter."""
    return generate_latest(registry)
