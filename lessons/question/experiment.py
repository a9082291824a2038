"""The same orders in three programs: plain Structured Streaming, the operator of the shop, Faust.

What each answers, before and after moves that become known late, and what it costs.
"""

import asyncio
import os
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import faust
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from analytics_spark.job import query
from analytics_spark.job.blobs import from_bytes
from analytics_spark.job.topics import Topic
from analytics_spark.settings import JobSettings
from fetching.errors import Failure
from lessons import faust_engine, spark_engine
from lessons.broker import Topics
from lessons.concurrency import run_with_topics
from lessons.experiment import Finding
from lessons.lab import Lab
from lessons.lesson import Record, Row, to_clock
from lessons.question import faust as in_faust
from lessons.question import spark as in_spark
from lessons.question.history import GRACE, LAST, History, Hours, Totals, make_history, to_hour
from lessons.settling import STEP_SECONDS_MAX
from local_stack.progress import tell
from test_support.analytics.histories import Event

ORDERS = 200_000
QUICK: Mapping[str, int] = {"orders": 2_000, "at_a_time": 3}
SECONDS_PER_ORDER_MAX = 0.01
"""In Faust, besides those of a step."""
ROCKSDB = "rocksdb://?driver=rocksdict"
PUBLISHED_AT = to_clock(LAST)
"""The operator refuses an order that is later than its record."""
TOPICS = ("users", "items", "orders")
SUMS = ("purchases", "quantity", "cents")
STATE_FILES = {".changelog", ".delta", ".zip", ".sst", ".log"}
"""Of Spark's state stores and of RocksDB, without what RocksDB writes about itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a program answered, and what it took.

    `first` is what it has answered when it has read all orders; `final` when it has read the late
    moves as well. `state` are the rows of each stateful step, from the sources on.
    """

    first: Hours
    final: Hours
    seconds: float
    state: Sequence[tuple[str, int]]
    state_bytes: int


Count = Callable[[Lab, Topics, str, History], Awaitable[Counted]]
"""Publishes a history to topics that begin with a text, and counts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Which hours are answered, and with what: before the late moves are known, and at the end."""

    text: str
    first: Callable[[History], Hours]
    final: Callable[[History], Hours]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    name: str
    count: Count
    claim: Claim


def run(lab: Lab, orders: int = ORDERS, at_a_time: int = 1) -> Sequence[Finding]:
    """Count so many orders in each program.

    Args:
        at_a_time: Programs that share the cores. With more than one, their figures mean nothing.

    Raises:
        Failure: there is no order, or no program.
    """
    if orders < 1:
        raise Failure(f"orders={orders}: at least one order is counted")
    if at_a_time < 1:
        raise Failure(f"at_a_time={at_a_time}: at least one program runs")
    return judge_all(lab, PROGRAMS, make_history(orders), at_a_time)


def run_controls(lab: Lab) -> Sequence[Finding]:
    """Count without what is behind a claim: the time of a move, the wait for what is late."""
    return judge_all(lab, CONTROLS, make_history(QUICK["orders"]), QUICK["at_a_time"])


def judge_all(
    lab: Lab, programs: Sequence[Program], history: History, programs_max: int
) -> list[Finding]:
    runs = (partial(judge, lab, program, history) for program in programs)
    return asyncio.run(run_with_topics(lab.servers, "question.experiment", programs_max, runs))


async def judge(
    lab: Lab, program: Program, history: History, topics: Topics, prefix: str
) -> Finding:
    """Count, and compare with the answers of the loop."""
    orders = len(history.orders)
    tell(f"question: {orders:,} orders in {program.name}")
    counted = await program.count(lab, topics, prefix, history)
    closed = [counted.final.get(hour, (0, 0, 0, 0)) for hour in history.closed]
    right = sum(counted.final.get(hour) == totals for hour, totals in history.after.items())
    row = {
        "program": program.name,
        "seconds": round(counted.seconds, 1),
        "orders/s": round(orders / counted.seconds),
        "state files kB": counted.state_bytes // 1000,
        "hours before moves": len(counted.first),
        "local buyers": sum(buyers for buyers, *_ in closed),
        "amount": sum(cents for *_, cents in closed) // 100,
        "right at the end": f"{right} of {len(history.after)}",
    }
    return Finding(
        row=row,
        claim=program.claim.text,
        difference=compare(counted.first, program.claim.first(history))
        or compare(counted.final, program.claim.final(history)),
        note="state: " + ", ".join(f"{rows:,} rows in {step}" for step, rows in counted.state),
    )


def compare(found: Hours, expected: Hours) -> str:
    """The first hour that differs; empty if none does."""
    for hour in sorted({*found, *expected}):
        if found.get(hour) != expected.get(hour):
            return f"{hour} has {found.get(hour)} instead of {expected.get(hour)}"
    return ""


async def count_plainly(
    lab: Lab,
    topics: Topics,
    prefix: str,
    history: History,
    query_of: Callable[[DataFrame, int], DataStreamWriter] = in_spark.count_local_buyers,
) -> Counted:
    """Run the query of this lesson, the state of which is rows."""
    found: dict[str, Totals] = {}

    def collect(batch: DataFrame, _: int) -> None:
        found.update(to_totals(row.asDict()) for row in batch.collect())

    records = spark_engine.read_records(lab.session, topics.servers, prefix, TOPICS)
    writer = query_of(records, to_seconds(GRACE)).foreachBatch(collect)
    return await run_query(topics, prefix, history, writer, lambda: dict(found))


async def count_in_operator(
    lab: Lab, topics: Topics, prefix: str, history: History, lateness: timedelta = GRACE
) -> Counted:
    """Run the operator of the shop, which keeps tables in packed form, and emits differences."""
    cells: defaultdict[tuple[int, str, str], Counter[str]] = defaultdict(Counter)

    def collect(batch: DataFrame, _: int) -> None:
        for row in batch.collect():
            for cell in from_bytes(row["cells"]).to_pylist():
                if cell["user_id"]:
                    key = cell["hour"], cell["user_id"], cell["item_id"]
                    cells[key].update({name: cell[name] for name in SUMS})

    def read_topic(session: SparkSession, topic: Topic, settings: JobSettings) -> DataFrame:
        renamed = {"subscribe": f"{prefix}{to_name(topic.name)}"}
        options = {**query.subscription(topic, settings), **renamed}
        return session.readStream.format("kafka").options(**options).load()

    # Neither a database nor a checkpoint of the shop is used.
    settings = JobSettings(
        environment="development",
        database_url="postgresql://127.0.0.1/unused",
        checkpoint_dir=Path("unused"),
        spark_jars_dir=Path("unused"),
        kafka_bootstrap_servers=topics.servers,
        lateness_seconds=to_seconds(lateness),
    )
    rows = query.outcomes(lab.session, settings, read_topic)
    writer = rows.writeStream.outputMode("update").foreachBatch(collect)
    return await run_query(topics, prefix, history, writer, lambda: sum_hours(cells))


def to_seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())


def sum_hours(cells: Mapping[tuple[int, str, str], Counter[str]]) -> Hours:
    """Cells by hour, user and item as hours."""
    buyers: defaultdict[str, set[str]] = defaultdict(set)
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (milliseconds, user, _), of_cell in cells.items():
        if of_cell["purchases"]:
            hour = to_hour(datetime.fromtimestamp(milliseconds / 1000, UTC))
            buyers[hour].add(user)
            sums[hour].update(of_cell)
    return {
        hour: (len(buyers[hour]), of_hour["purchases"], of_hour["quantity"], of_hour["cents"])
        for hour, of_hour in sums.items()
    }


async def run_query(
    topics: Topics,
    prefix: str,
    history: History,
    writer: DataStreamWriter,
    get_hours: Callable[[], Hours],
) -> Counted:
    """Run a query of Spark on a history; `get_hours` has what it has answered so far."""
    await topics.create(f"{prefix}{name}" for name in TOPICS)
    await topics.publish(prefix, map(to_record, [*history.facts, *history.orders]))
    with TemporaryDirectory(prefix="hometown-lesson-") as folder:
        began_at = time.monotonic()
        async with spark_engine.running(writer, Path(folder)) as streaming:
            await asyncio.to_thread(streaming.processAllAvailable)
            seconds = time.monotonic() - began_at
            first, state_bytes = get_hours(), measure(Path(folder))
            # A batch between them could have the last order, which closes all hours, and some of
            # the moves only: they are in different topics.
            for events in (history.late, [history.last]):
                await topics.publish(prefix, map(to_record, events))
                await asyncio.to_thread(streaming.processAllAvailable)
            state = get_state(streaming)
    return Counted(
        first=first, final=get_hours(), seconds=seconds, state=state, state_bytes=state_bytes
    )


def get_state(streaming: StreamingQuery) -> list[tuple[str, int]]:
    """The stateful steps of a query, from the sources on, each with the most rows that it had."""
    batches = [progress.stateOperators for progress in streaming.recentProgress]
    steps = [
        (step[0].operatorName, max(operator.numRowsTotal for operator in step))
        for step in zip(*batches, strict=True)
    ]
    return steps[::-1]


async def count_in_faust(lab: Lab, topics: Topics, prefix: str, history: History) -> Counted:
    """Run the agents of this lesson, when they know all facts: an order of an unknown user would
    be lost."""
    out, name = f"{prefix}out", f"{prefix}{time.time_ns()}"
    seconds_max = STEP_SECONDS_MAX + len(history.orders) * SECONDS_PER_ORDER_MAX

    @asynccontextmanager
    async def running_app(folder: str) -> AsyncIterator[faust.App]:
        """Inside, its agents have read all there is. The next one goes on in the folder."""
        app = faust_engine.make_app(name, topics.servers, folder, ROCKSDB)
        records = faust_engine.read_records(app, prefix, TOPICS)
        in_faust.count_local_buyers(app, records, app.topic(out, value_serializer="json"))
        async with faust_engine.running(app, topics, seconds_max):
            yield app

    await topics.create([*(f"{prefix}{name}" for name in TOPICS), out])
    await topics.publish(prefix, map(to_record, history.facts))
    with TemporaryDirectory(prefix="hometown-lesson-") as folder:
        async with running_app(folder):
            pass
        await topics.publish(prefix, map(to_record, history.orders))
        began_at = time.monotonic()
        async with topics.open_reader(out) as reader, running_app(folder) as app:
            seconds = time.monotonic() - began_at
            first, state_bytes = to_hours(await reader.read_to_end()), measure(Path(folder))
            await topics.publish(prefix, map(to_record, [*history.late, history.last]))
            await faust_engine.wait_until_read(topics, app)
            final = {**first, **to_hours(await reader.read_to_end())}
            state = [(name, len(table)) for name, table in app.tables.items()]
    return Counted(first=first, final=final, seconds=seconds, state=state, state_bytes=state_bytes)


def to_hours(rows: Iterable[Row]) -> Hours:
    """The last row of each hour."""
    return dict(map(to_totals, rows))


def to_totals(row: Row) -> tuple[str, Totals]:
    hour = row["hour"]
    name = to_hour(hour) if isinstance(hour, datetime) else hour
    return name, (row["local_buyers"], row["purchases"], row["quantity"], row["cents"])


def measure(folder: Path) -> int:
    """Bytes of the state in a folder, in which an engine may remove files meanwhile."""
    total = 0
    # `os.walk` passes over a folder that is removed meanwhile; `Path.rglob` fails.
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            if path.suffix in STATE_FILES:
                with suppress(FileNotFoundError):
                    total += path.stat().st_size
    return total


def to_record(event: Event) -> Record:
    """As the shop publishes it, in a topic of the lesson."""
    headers = {name: value.decode() for name, value in event.headers}
    return Record(
        topic=to_name(event.topic),
        key=event.key,
        value=event.value.decode(),
        headers=headers,
        time=PUBLISHED_AT,
    )


def to_name(topic: str) -> str:
    return topic.removesuffix(".v1")


CLOSED_ONLY = Claim(
    text="closed hours, the others later",
    first=lambda history: history.closed,
    final=lambda history: history.after,
)
CORRECTED = Claim(
    text="all hours, corrected later",
    first=lambda history: history.before,
    final=lambda history: history.after,
)
FOR_GOOD = Claim(
    text="all hours, not corrected",
    first=lambda history: history.before,
    final=lambda history: history.before,
)

PROGRAMS = (
    Program(name="plain Structured Streaming", count=count_plainly, claim=CLOSED_ONLY),
    Program(name="the operator of the shop", count=count_in_operator, claim=CORRECTED),
    Program(name="plain Faust", count=count_in_faust, claim=FOR_GOOD),
)
CONTROLS = (
    Program(
        name="plain, by the first address",
        count=partial(count_plainly, query_of=in_spark.count_by_first_address),
        claim=CLOSED_ONLY,
    ),
    Program(
        name="the operator with a second of lateness",
        count=partial(count_in_operator, lateness=timedelta(seconds=1)),
        claim=CORRECTED,
    ),
)
