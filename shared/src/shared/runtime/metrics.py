"""Metrics of a process: what code records, and its text for Prometheus.

A metric is a constant of the module that records it, next to the code. Its name, unit and
attributes are a promise to dashboards and alerts: `make generate` writes them into docs/metrics.md,
and tests compare that with what each process of a running stack exposes.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock

from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Upper bounds of the buckets of a duration: from a request to an order that times out."""
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""Upper bounds of the buckets of a number of things in a batch."""

Values = tuple[str, ...]
"""Of the attributes of a metric, in their order."""

Read = Callable[[], Mapping[Values, float]]

meter = metrics.get_meter("hometown")
"""Records nothing until `configured`, and nothing at all without an exporter."""

registry = CollectorRegistry()
"""What this process exposes."""


class Counter:
    """How often something has happened; one without attributes begins with 0.

    It is read when the process is asked for its metrics. A counter of the SDK costs 6 µs each time
    that something is counted, and this one a sixth of that.
    """

    def __init__(
        self, name: str, unit: str, description: str, /, attributes: Sequence[str] = ()
    ) -> None:
        self._attributes = attributes
        self._totals: dict[Values, float] = defaultdict(float)
        self._lock = Lock()
        if not attributes:
            self.add(0)
        meter.create_observable_counter(name, [self._observe], unit, description)

    def add(self, number: float, *values: str) -> None:
        """Count, with a value for each attribute. To add 0 exposes a series before its first
        event: Prometheus computes an increase from two values, so it would miss the first one."""
        if len(values) != len(self._attributes):
            raise ValueError(f"{values} are not the values of {self._attributes}")
        with self._lock:
            self._totals[values] += number

    @property
    def totals(self) -> Mapping[Values, float]:
        """What was counted until now, by the values of the attributes."""
        with self._lock:
            return dict(self._totals)

    def _observe(self, options: CallbackOptions) -> Iterable[Observation]:
        return to_observations(self._attributes, self.totals)


class Histogram:
    """How values are distributed, by buckets with these upper bounds."""

    def __init__(
        self,
        name: str,
        unit: str,
        description: str,
        /,
        attributes: Sequence[str] = (),
        bounds: Sequence[float] = SECONDS,
    ) -> None:
        self._attributes = attributes
        self._histogram = meter.create_histogram(
            name, unit, description, explicit_bucket_boundaries_advisory=list(bounds)
        )

    def record(self, amount: float, *values: str | int) -> None:
        """Record one value, with a value for each attribute."""
        self._histogram.record(amount, dict(zip(self._attributes, values, strict=True)))


class Gauge:
    """How much there is now, read when the process is asked for its metrics."""

    def __init__(
        self, name: str, unit: str, description: str, /, attributes: Sequence[str] = ()
    ) -> None:
        self._attributes = attributes
        self._reads: list[Read] = []
        meter.create_observable_gauge(name, [self._observe], unit, description)

    @contextmanager
    def read_by(self, read: Read) -> Iterator[None]:
        """Expose what `read` returns while the block runs: a number for each values of the
        attributes, which are none for a gauge without attributes. It runs in the event loop, and
        must not wait."""
        self._reads.append(read)
        try:
            yield
        finally:
            self._reads.remove(read)

    def _observe(self, options: CallbackOptions) -> Iterable[Observation]:
        for read in self._reads:
            yield from to_observations(self._attributes, read())


def to_observations(
    attributes: Sequence[str], numbers: Mapping[Values, float]
) -> Sequence[Observation]:
    return [
        Observation(number, dict(zip(attributes, values, strict=True)))
        for values, number in numbers.items()
    ]


CLOCK = Gauge(
    "hometown.process.clock",
    "s",
    "The clock of the process in seconds since 1970, when it was read: at most a second ago",
)


def create_resource(service_name: str) -> Resource:
    """Create what metrics and traces have in common: the name of their process."""
    return Resource.create({"service.name": service_name, "service.namespace": "hometown"})


@contextmanager
def configured(service_name: str, exporter: str) -> Iterator[None]:
    """Expose metrics for the length of a process.

    Args:
        service_name: the name of the process, e.g. `notes-api`.
        exporter: `prometheus`, or `none` to expose nothing.
    """
    if exporter == "none":
        yield
        return
    reader = PrometheusMetricReader(scope_info_enabled=False, registry=registry)
    provider = MeterProvider([reader], create_resource(service_name))
    metrics.set_meter_provider(provider)
    of_process = ProcessCollector(registry=registry)
    try:
        with CLOCK.read_by(lambda: {(): time.time()}):
            yield
    finally:
        provider.shutdown()
        registry.unregister(of_process)


def expose() -> bytes:
    """Write all metrics of this process as text for Prometheus; nothing without an exporter."""
    return generate_latest(registry)
