"""A job in five forms: as it comes, and from form to form with one cause of its slowness less."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from fetching.errors import Failure
from lessons.broker import Topics
from lessons.concurrency import run_with_topics
from lessons.experiment import Finding
from lessons.lab import Lab
from lessons.question.experiment import compare, to_record, to_totals
from lessons.question.history import History, make_history
from lessons.spark_engine import CONFIGURATION, CORES
from lessons.tuning.checking import check
from lessons.tuning.job import FACT_TOPICS, PARTITIONS, Job, Measured, Shape, run_query
from lessons.tuning.orders import ORDER_TOPIC, read_in_python, read_in_spark
from local_stack.progress import tell

__all__ = ["QUICK", "check", "run", "run_controls"]

QUICK: Mapping[str, int] = {
    "orders": 2_000,
    "batches": 2,
    "partitions": 4,
    "warm_ups": 0,
    "at_a_time": 3,
}
ORDERS = 50_000
BATCHES = 10
BATCHES_MAX = 90
"""Spark keeps the progress of fewer than 100."""
PARTITIONS_BY_DEFAULT = 200
WARM_UPS = 1
FILES = "spark.sql.streaming.checkpointFileManagerClass"
FACTS_MAX = 300
"""Of 1,000 users with 40 moves, and four items: they come in four batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A job on so many orders, the shape that is claimed of it, and why it is faster than before.

    If it is begun by another job, that one reads the first half of the orders, and this one goes on
    with its checkpoint.
    """

    name: str
    job: Job
    orders: int
    shape: Shape
    reason: str = ""
    begun_by: Job | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a trial took, and what differs from its claim; empty if nothing does."""

    trial: Trial
    measured: Measured
    difference: str

    @property
    def pace(self) -> float:
        """Orders per second."""
        return self.trial.orders / self.measured.seconds


def run(
    lab: Lab,
    orders: int = ORDERS,
    batches: int = BATCHES,
    partitions: int = PARTITIONS_BY_DEFAULT,
    warm_ups: int = WARM_UPS,
    at_a_time: int = 1,
) -> Sequence[Finding]:
    """Count so many orders in each form.

    Args:
        batches: In so many the first forms read them, at most.
        partitions: Of the form as it comes, which counts the orders of one batch only.
        warm_ups: Of the two fastest forms before, in which Java compiles what queries execute.
        at_a_time: Runs that share the cores. With more than one, their figures mean nothing.

    Raises:
        Failure: there is no partition or run, no order for each batch, or too many batches.
    """
    for name, number in {"partitions": partitions, "at_a_time": at_a_time}.items():
        if number < 1:
            raise Failure(f"{name}={number}: there is at least one")
    if not 1 <= batches <= min(orders, BATCHES_MAX):
        raise Failure(
            f"batches={batches} of orders={orders}: there are 1 to {BATCHES_MAX}, each with orders"
        )
    trials = make_trials(orders, batches, partitions)
    before = [replace(trial, name=f"{trial.name}, to warm up") for trial in trials[-2:]] * warm_ups
    results = try_all(lab, [*before, *trials], at_a_time)
    return to_findings(results[len(before) :])


def run_controls(lab: Lab) -> Sequence[Finding]:
    """Claim of jobs what only the mechanism that they lack would give."""
    return to_findings(try_all(lab, make_controls(), QUICK["at_a_time"]))


def to_findings(results: Sequence[Result]) -> list[Finding]:
    """Compare the pace of each with that of the first."""
    first = results[0]
    return [
        Finding(
            row={
                "step": result.trial.name,
                "orders/s": round(result.pace),
                "times the first": round(result.pace / first.pace, 1),
                "batches": result.measured.shape.batches,
                "seconds": round(result.measured.seconds, 1),
                "files": result.measured.files,
            },
            claim=str(result.trial.shape),
            difference=result.difference,
            note=result.trial.reason,
        )
        for result in results
    ]


def try_all(lab: Lab, trials: Sequence[Trial], trials_max: int) -> list[Result]:
    """Run trials, at most so many at a time. Raises the first error of one."""
    runs = [partial(judge, lab.session, trial) for trial in trials]
    return asyncio.run(run_with_topics(lab.servers, "tuning.experiment", trials_max, runs))


async def judge(session: SparkSession, trial: Trial, topics: Topics, prefix: str) -> Result:
    """Run a trial, and compare its hours with those of a plain loop, and its shape."""
    tell(f"tuning: {trial.orders:,} orders, {trial.name}")
    history = make_history(trial.orders)
    measured = await measure(session, trial, history, topics, prefix)
    hours = dict(map(to_totals, measured.rows))
    difference = compare(hours, history.closed)
    if len(hours) < len(measured.rows):
        difference = f"{len(measured.rows)} rows of {len(hours)} hours"
    if not difference and measured.shape != trial.shape:
        difference = str(measured.shape)
    return Result(trial=trial, measured=measured, difference=difference)


async def measure(
    session: SparkSession, trial: Trial, history: History, topics: Topics, prefix: str
) -> Measured:
    """Publish a history, and run a job on it, or one after the other on one checkpoint."""
    await topics.create(f"{prefix}{topic}" for topic in (*FACT_TOPICS, ORDER_TOPIC))
    await topics.publish(prefix, map(to_record, history.facts))
    with TemporaryDirectory(prefix="hometown-lesson-") as folder:

        async def go_on(job: Job, begin: int, end: int | None) -> Measured:
            await topics.publish(prefix, map(to_record, history.orders[begin:end]))
            return await run_query(job.make_rows(session, topics.servers, prefix), Path(folder))

        if trial.begun_by is None:
            return await go_on(trial.job, 0, None)
        half = len(history.orders) // 2
        begun = await go_on(trial.begun_by, 0, half)
        measured = await go_on(trial.job, half, None)
        return replace(measured, rows=[*begun.rows, *measured.rows])


def make_trials(orders: int, batches: int, partitions: int) -> list[Trial]:
    """Make the steps from the job as it comes to the fastest one."""
    size = math.ceil(orders / batches)
    as_it_comes = Job(
        options={PARTITIONS: str(partitions)}, orders_max=size, read_orders=read_in_python
    )
    few = replace(as_it_comes, options={PARTITIONS: str(CORES)})
    plain = replace(few, options={**few.options, FILES: CONFIGURATION[FILES]})
    large = replace(plain, orders_max=orders)
    native = replace(large, read_orders=read_in_spark)
    small_batches = Shape(partitions=CORES, batches=math.ceil(orders / size), uses_python=True)
    one_batch = replace(small_batches, batches=1)
    return [
        Trial(
            name="as it comes",
            job=as_it_comes,
            orders=size,
            shape=replace(one_batch, partitions=partitions),
            reason=f"each batch opens and writes ten state stores in each of {partitions}"
            " partitions, most of them empty",
        ),
        Trial(
            name="a partition for each core",
            job=few,
            orders=orders,
            shape=small_batches,
            reason="all stores of a partition are used, and two tasks run at a time anyway",
        ),
        Trial(
            name="files renamed by Java",
            job=plain,
            orders=orders,
            shape=small_batches,
            reason="to rename a file, Hadoop starts a program four times, and Java none",
        ),
        Trial(
            name="one large batch",
            job=large,
            orders=orders,
            shape=one_batch,
            reason="plans, offsets, commits and files of a batch are paid once",
        ),
        Trial(
            name="JSON read by Spark",
            job=native,
            orders=orders,
            shape=replace(one_batch, uses_python=False),
            reason="no order goes to a process of Python and back",
        ),
    ]


def make_controls() -> list[Trial]:
    """Make jobs that are claimed to be as the fastest one."""
    *_, fastest = make_trials(QUICK["orders"], QUICK["batches"], QUICK["partitions"])
    job = fastest.job
    many = {**job.options, PARTITIONS: str(QUICK["partitions"])}
    return [
        replace(
            fastest,
            name="fewer partitions from the second start on",
            begun_by=replace(job, options=many),
        ),
        replace(
            fastest,
            name="JSON read by Python",
            job=replace(job, read_orders=read_in_python),
        ),
        replace(
            fastest,
            name="users later than their orders",
            job=replace(job, facts_max=FACTS_MAX),
            shape=replace(fastest.shape, batches=4),
        ),
    ]
