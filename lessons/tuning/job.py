"""The plain query of *question* as a job whose slowness can be set, and what a run of it takes."""

import asyncio
import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from lessons.lesson import Row
from lessons.question.experiment import to_seconds
from lessons.question.history import GRACE
from lessons.question.records import to_lines
from lessons.question.spark import count, last_known
from lessons.spark_engine import open_apart, read_records, running
from lessons.tuning.orders import ORDER_TOPIC

PARTITIONS = "spark.sql.shuffle.partitions"
FACT_TOPICS = ("users", "items")
LIMIT = "maxOffsetsPerTrigger"
RUNS_PYTHON = re.compile(r"Python|InPandas|InArrow|InPySpark")
"""Steps of a plan that send rows to a process of Python."""

ReadOrders = Callable[[DataFrame], DataFrame]
"""Makes orders as columns of records of all topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What decides how fast a query is, as Spark reports it. `batches` are those that read."""

    partitions: int
    batches: int
    uses_python: bool

    def __str__(self) -> str:
        python = "Python" if self.uses_python else "no Python"
        partitions = "partition" if self.partitions == 1 else "partitions"
        batches = "batch" if self.batches == 1 else "batches"
        return f"{self.partitions} {partitions}, {self.batches} {batches}, {python}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run of a query: its rows, its shape, and what it took.

    `seconds` are those of all batches, also of the last one, which reads nothing and closes hours.
    `files` are those of its checkpoint, and `state_rows` the rows that all its stateful steps keep
    at the end.
    """

    rows: Sequence[Row]
    shape: Shape
    seconds: float
    files: int
    state_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The plain query: options of its session, how many orders and facts a batch has at most, and
    what reads the orders. Without a limit of facts, the first batch has them all."""

    options: Mapping[str, str]
    orders_max: int
    facts_max: int | None = None
    read_orders: ReadOrders

    def make_rows(self, session: SparkSession, servers: str, prefix: str) -> DataFrame:
        """Make the rows of its query, one for each hour."""
        apart = open_apart(session, self.options)
        facts = read_records(apart, servers, prefix, FACT_TOPICS, to_limit(self.facts_max))
        orders = read_records(apart, servers, prefix, [ORDER_TOPIC], to_limit(self.orders_max))
        lines = to_lines(self.read_orders(orders), to_seconds(GRACE))
        return count(facts, lines, last_known)


def to_limit(records_max: int | None) -> Mapping[str, str]:
    """Make the option of a source of which a batch reads so many records at most; None: all."""
    return {} if records_max is None else {LIMIT: str(records_max)}


async def run_query(rows: DataFrame, folder: Path) -> Measured:
    """Read all records that there are, in append mode, with a checkpoint in a folder."""
    found: list[Row] = []

    def collect(batch: DataFrame, _: int) -> None:
        found.extend(row.asDict() for row in batch.collect())

    writer = rows.writeStream.outputMode("append").foreachBatch(collect)
    async with running(writer, folder) as query:
        await asyncio.to_thread(query.processAllAvailable)
        progress = query.recentProgress
    batches = [batch for batch in progress if "addBatch" in batch.durationMs]
    steps = progress[-1].stateOperators
    return Measured(
        rows=found,
        shape=Shape(
            partitions=max((step.numShufflePartitions for step in steps), default=0),
            batches=sum(batch.numInputRows > 0 for batch in batches),
            uses_python=uses_python(rows),
        ),
        seconds=sum(batch.durationMs["triggerExecution"] for batch in batches) / 1000,
        files=sum(len(names) for _, _, names in os.walk(folder)),
        state_rows=sum(step.numRowsTotal for step in steps),
    )


def uses_python(rows: DataFrame) -> bool:
    """Find out whether the plan of a query sends rows to Python."""
    with redirect_stdout(io.StringIO()) as plan:
        rows.explain()
    return RUNS_PYTHON.search(plan.getvalue()) is not None
