"""What processes expose at `/metrics`, as values: scrapes, and what follows from several of them.

A rate is the difference of a counter between the first and the last scrape of a window. A counter
that is smaller than before belongs to a process that has restarted: it began at zero.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from prometheus_client.parser import text_string_to_metric_families

SCRAPES_MAX = 6
"""Of a window: the last ten seconds, at the usual two seconds."""
POINTS_MAX = 150
"""Of a chart: the last five minutes."""

Labels = frozenset[tuple[str, str]]

OURS = ("hometown_", "http_server_", "process_resident_", "process_cpu_")
LEFT_OUT = ("_bucket", "_created")
"""What no figure of the console is made of; most samples of a process."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """The values of one process at one moment, by name and labels; `at` in monotonic seconds."""

    at: float
    values: Mapping[str, Mapping[Labels, float]]

    def select(self, name: str, **labels: str) -> Mapping[Labels, float]:
        """The values of a metric that have these labels."""
        wanted = labels.items()
        found = self.values.get(name, {})
        return {key: value for key, value in found.items() if wanted <= dict(key).items()}

    def total(self, name: str, **labels: str) -> float | None:
        """Their sum; None if there are none."""
        found = self.select(name, **labels)
        return sum(found.values()) if found else None

    def largest(self, name: str, **labels: str) -> float | None:
        return max(self.select(name, **labels).values(), default=None)


def parse(text: str, at: float) -> Scrape:
    """The metrics in what a process exposes. Raises ValueError: it is malformed."""
    lines = [line for line in text.splitlines() if is_used(line)]
    values: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            values.setdefault(sample.name, {})[labels] = sample.value
    return Scrape(at, values)


def is_used(line: str) -> bool:
    """Whether a line is a sample of ours. The parser needs most of the time of a scrape."""
    return line.startswith(OURS) and not line.partition("{")[0].endswith(LEFT_OUT)


@dataclass(slots=True)
class Window:
    """The last scrapes of one process, oldest first."""

    scrapes: deque[Scrape] = field(default_factory=lambda: deque(maxlen=SCRAPES_MAX))

    @property
    def last(self) -> Scrape | None:
        return self.scrapes[-1] if self.scrapes else None

    @property
    def seconds(self) -> float:
        return self.scrapes[-1].at - self.scrapes[0].at if self.scrapes else 0.0

    def total(self, name: str, **labels: str) -> float | None:
        return self.last.total(name, **labels) if self.last else None

    def largest(self, name: str, **labels: str) -> float | None:
        return self.last.largest(name, **labels) if self.last else None

    def increase(self, name: str, **labels: str) -> float | None:
        """How much a counter has grown; None if it is not exposed, or was scraped once only.

        One that was not exposed before was zero: a counter appears with its first value.
        """
        if len(self.scrapes) < 2 or self.total(name, **labels) is None:
            return None
        totals = [scrape.total(name, **labels) or 0.0 for scrape in self.scrapes]
        return sum(new - old if new >= old else new for old, new in pairwise(totals))

    def rate(self, name: str, **labels: str) -> float | None:
        """Of a counter, per second."""
        grown = self.increase(name, **labels)
        return None if grown is None or not self.seconds else grown / self.seconds

    def flow(self, name: str, **labels: str) -> float | None:
        """As `rate`, but 0 for a counter that is not exposed: nothing was counted yet."""
        rate = self.rate(name, **labels)
        return 0.0 if rate is None and self.seconds else rate

    def mean(self, name: str) -> float | None:
        """Of the values that a histogram got in this window; None if it got none."""
        number = self.increase(f"{name}_count")
        grown = self.increase(f"{name}_sum")
        return grown / number if number and grown is not None else None


Read = Callable[[Window], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A figure of a process that is drawn over time."""

    title: str
    unit: str
    read: Read


def scaled(read: Read, factor: float) -> Read:
    """The same figure in another unit."""

    def read_scaled(window: Window) -> float | None:
        value = read(window)
        return None if value is None else value * factor

    return read_scaled


def milliseconds_of(histogram: str) -> Read:
    return scaled(lambda window: window.mean(histogram), 1000)


def rate_of(counter: str) -> Read:
    return lambda window: window.rate(counter)


megabytes = scaled(lambda window: window.total("process_resident_memory_bytes"), 1 / 2**20)
percent_of_a_core = scaled(rate_of("process_cpu_seconds_total"), 100)


SERIES = (
    Series(title="requests", unit="/s", read=rate_of("http_server_request_duration_seconds_count")),
    Series(
        title="request duration",
        unit="ms",
        read=milliseconds_of("http_server_request_duration_seconds"),
    ),
    Series(title="events recorded", unit="/s", read=rate_of("hometown_append_events_total")),
    Series(title="records published", unit="/s", read=rate_of("hometown_relay_records_total")),
    Series(title="delay", unit="ms", read=milliseconds_of("hometown_relay_delay_seconds")),
    Series(title="messages consumed", unit="/s", read=rate_of("hometown_inbox_messages_total")),
    Series(
        title="batch duration",
        unit="ms",
        read=milliseconds_of("hometown_inbox_batch_duration_seconds"),
    ),
    Series(title="orders counted", unit="/s", read=rate_of("hometown_job_orders_total")),
    Series(
        title="batch duration",
        unit="ms",
        read=milliseconds_of("hometown_job_batch_duration_seconds"),
    ),
    Series(title="CPU", unit="% of a core", read=percent_of_a_core),
    Series(title="memory", unit="MiB", read=megabytes),
)
"""A process has those whose metrics it exposes; the first ones are the ones that a list shows."""

LAG = Series(title="lag", unit="records", read=lambda window: None)
"""Of a consumer, which the observer measures."""


@dataclass(slots=True)
class History:
    """The last points of each series of one process; None where there was no value."""

    points: dict[Series, deque[float | None]] = field(default_factory=dict)

    def add(self, series: Series, value: float | None) -> None:
        """A series begins with its first value."""
        if series not in self.points:
            if value is None:
                return
            self.points[series] = deque(maxlen=POINTS_MAX)
        self.points[series].append(value)

    def add_all(self, window: Window) -> None:
        for series in SERIES:
            self.add(series, series.read(window))

    def __iter__(self) -> Iterator[tuple[Series, Sequence[float | None]]]:
        order = (LAG, *SERIES)
        for series in sorted(self.points, key=order.index):
            yield series, list(self.points[series])
