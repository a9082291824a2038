"""state: the job's size on disk, batch by batch, while hours become final."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.analytics import counting, shop_history
from benchmarks.analytics.counting import Job, SeenBatch
from benchmarks.analytics.job_sizes import Size
from benchmarks.goals import ratio_at_most
from benchmarks.part import Part
from benchmarks.series import Series
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.messaging import topics
from shared.runtime.brokers import Brokers
from shared.runtime.progress import tell_in_place

MEBIBYTE = 1 << 20
PIECES = 5
"""Pieces of the list of batches. In the first one, the state fills with orders that can change."""

CHECKPOINT = "checkpoint"
STORES = "state stores (RocksDB)"


async def measure(context: StackContext, size: Size) -> list[Series]:
    await topics.create(Brokers(context.address("kafka")))
    tell_in_place(f"state: publishing {size.orders:,} orders")
    totals = (await shop_history.fill(context.address("kafka"), size)).totals
    tell_in_place("state: counting")
    async with counting.run_job(
        context, counting.get_full_speed_settings(size.state_per_batch)
    ) as job:
        sizes = Sizes(job)
        batches = await job.batches(lambda seen: sizes.done(seen, totals.orders))
        await job.demand_totals(totals)
        tell_in_place("state: waiting until Spark has removed old state files")
        await asyncio.sleep(size.tidy_seconds)
        sizes.measure()
    return [
        *to_sizes(CHECKPOINT, sizes.checkpoint),
        *to_sizes(STORES, sizes.stores),
        *pace(batches),
    ]


class Sizes:
    """The sizes of the folders after each batch, in MiB."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._measured = 0
        self.checkpoint: list[float] = []
        self.stores: list[float] = []

    def done(self, seen: Sequence[SeenBatch], orders: int) -> bool:
        if len(seen) > self._measured:
            self._measured = len(seen)
            self.measure()
        return counting.has_counted(orders)(seen)

    def measure(self) -> None:
        self.checkpoint.append(bytes_below(self._job.folder / "checkpoint") / MEBIBYTE)
        self.stores.append(bytes_below(self._job.folder / "local") / MEBIBYTE)


def bytes_below(folder: Path) -> int:
    """The size of all files; one that disappears meanwhile counts 0."""
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:
                continue
    return size


def pieces(values: Sequence[float]) -> list[Sequence[float]]:
    """PIECES slices of about equal length; fewer when there are fewer values."""
    edges = [len(values) * number // PIECES for number in range(PIECES + 1)]
    return [values[begin:end] for begin, end in pairwise(edges) if begin < end]


def to_sizes(name: str, values: Sequence[float]) -> list[Series]:
    """The largest of each fifth; the last value is the one after the end."""
    *during, after = values
    return compare_with_second(
        [
            *(
                Series(name=f"{name}, largest of fifth {number}", unit="MiB", rounds=(max(piece),))
                for number, piece in enumerate(pieces(during), start=1)
            ),
            Series(name=f"{name}, after the end", unit="MiB", rounds=(after,)),
        ]
    )


def pace(batches: Sequence[SeenBatch]) -> list[Series]:
    """Seconds of a batch, by the same fifths."""
    seconds = [after.seen_at - before.seen_at for before, after in pairwise(batches)]
    return compare_with_second(
        [
            Series(name=f"a batch, median of fifth {number}", unit="s", rounds=(median(piece),))
            for number, piece in enumerate(pieces(seconds), start=1)
        ]
    )


def compare_with_second(fifths: Sequence[Series]) -> list[Series]:
    """Set the second fifth as the limit of the last one: the state is at its full size in it."""
    *before, last = fifths
    return [*before, replace(last, limit=fifths[min(1, len(before))], goal=ratio_at_most(1.1))]


PART = Part(
    name="state",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
