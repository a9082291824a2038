"""Records as they arrive at a consumer, with the time that each of them took."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import quantiles

from aiokafka import AIOKafkaConsumer, ConsumerRecord

from benchmarks import rows

POLL_MILLISECONDS = 50
LOOK_EVERY_SECONDS = 0.02
QUIET_SECONDS = 1.0
"""After this time without a record, no more records are expected."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Instants in seconds since 1970, all of this machine's clock.

    `called_at` is when the append was called (it is in the record's value), `logged_at` when the
    broker wrote the record into its log, in whole milliseconds, just before it acknowledges.
    """

    called_at: float
    logged_at: float
    consumed_at: float

    @property
    def to_log_milliseconds(self) -> float:
        return (self.logged_at - self.called_at) * 1000

    @property
    def to_consumer_milliseconds(self) -> float:
        return (self.consumed_at - self.called_at) * 1000


@dataclass(slots=True)
class Arrivals:
    """Everything that has arrived so far."""

    each: list[Arrival] = field(default_factory=list)
    last_at: float = field(default_factory=time.monotonic)

    def add(self, records: Sequence[ConsumerRecord]) -> None:
        now = time.time()
        self.last_at = time.monotonic()
        self.each += [
            Arrival(rows.read_instant(record.value), record.timestamp / 1000, now)
            for record in records
        ]

    def called_between(self, begin: float, end: float) -> list[Arrival]:
        return [arrival for arrival in self.each if begin <= arrival.called_at < end]

    async def wait_until_called_after(self, instant: float) -> None:
        while not self.each or self.each[-1].called_at <= instant:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def wait_until_quiet(self) -> None:
        while (rest := self.last_at + QUIET_SECONDS - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(rest)


@asynccontextmanager
async def collect_arrivals(consumer: AIOKafkaConsumer) -> AsyncIterator[Arrivals]:
    """Collects what arrives from now on.

    Garbage collection is off meanwhile: with so many objects, a collection takes a quarter of a
    second, which would count as the delay of the records that wait for it.
    """
    arrivals = Arrivals()

    async def collect() -> None:
        while True:
            batches = await consumer.getmany(timeout_ms=POLL_MILLISECONDS)
            if batches:
                arrivals.add([record for records in batches.values() for record in records])

    gc.disable()
    collector = asyncio.create_task(collect())
    try:
        yield arrivals
    finally:
        collector.cancel()
        await asyncio.wait([collector])
        gc.enable()


RANKS = ("p50", "p99", "p99.9", "longest")


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """By their RANKS. Raises StatisticsError when there are fewer than two values."""
    cuts = quantiles(values, n=1000, method="inclusive")
    return dict(zip(RANKS, (cuts[499], cuts[989], cuts[998], max(values)), strict=True))
