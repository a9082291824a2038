"""Spark as an engine of lessons: one plain session, and a streaming query for each case."""

import asyncio
import inspect
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import current_thread, main_thread
from typing import Any

from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from analytics_spark.job.gateway import JavaEnded
from analytics_spark.job.session import JAVA_OPTIONS, STREAMING, get_aot_options, start_session
from fetching import aot_cache
from fetching.errors import Failure
from fetching.jars import SPARK_JARS, fetch
from lessons.broker import FETCH_WAIT_MILLISECONDS_MAX, Topics
from lessons.lesson import Case, Row, Rows, to_clock
from local_stack.progress import tell
from local_stack.settings import Settings

HEAP = "-Xmx1g"
CORES = 2
LINES_SHOWN = 5
"""Of the output of a Java that could not be started."""

EXCEPTION_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""They print each exception that PySpark raises, in a page of JSON."""

CLIENT: Mapping[str, str] = {"kafka.fetch.max.wait.ms": str(FETCH_WAIT_MILLISECONDS_MAX)}
"""A task asks for the end of the topic as well: with the default, each batch takes half a second
longer."""

Answer = Callable[..., DataStreamWriter]
"""Makes a query of a stream of records, with the columns topic, key, value (texts) and time."""

CONFIGURATION: Mapping[str, str] = {
    "spark.app.name": "lessons",
    "spark.master": f"local[{CORES}]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "analytics_spark.job.workers",
    "spark.sql.session.timeZone": "UTC",
    # A lesson has few keys: with the default of 200, each batch takes seconds (lesson *tuning*).
    "spark.sql.shuffle.partitions": str(CORES),
    # One state store for both sides of a join instead of four.
    "spark.sql.streaming.join.stateFormatVersion": "3",
    # Timers and states of several kinds need it.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A batch writes what it has changed, not all files of its state.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Its default starts a program four times for each file that it renames (lesson *tuning*).
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
}


@contextmanager
def open_session() -> Iterator[SparkSession]:
    """Start Spark with its source of Kafka topics, unless it runs, and stop it at the end.

    Raises:
        Failure: the jars of the source could not be fetched, or Java could not be started.
    """
    settings = Settings()
    jars = sorted(fetch(SPARK_JARS, settings, tell).glob("*.jar"))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    cache = get_aot_options(aot_cache.file_of(settings), writes=False)
    for name in EXCEPTION_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    # Java and Spark's Python workers write lines that are no answer to a lesson.
    with TemporaryFile() as output, keeping_interrupts():
        try:
            session = start_session([HEAP, *JAVA_OPTIONS, *cache], jars, CONFIGURATION, output)
        except JavaEnded as error:
            output.seek(0)
            details = output.read().decode(errors="replace").splitlines()[-LINES_SHOWN:]
            raise Failure(str(error), details=details) from error
    try:
        yield open_apart(session, CONFIGURATION)
    finally:
        session.stop()


def open_apart(session: SparkSession, options: Mapping[str, str]) -> SparkSession:
    """Open one more session of a Spark that runs, whose options of streams are these alone.

    A process has one Spark. In a run of tests, the job of the shop may have started it: without
    this, its options would hold for lessons, and those of lessons for the job.
    """
    apart = session.newSession()
    for name in apart.conf.getAll:
        if name.startswith(STREAMING):
            apart.conf.unset(name)
    for name, value in options.items():
        if name.startswith("spark.sql."):
            apart.conf.set(name, value)
    return apart


@contextmanager
def keeping_interrupts() -> Iterator[None]:
    """Put back the handler of Ctrl-C. That of PySpark raises KeyboardInterrupt wherever it finds
    the thread; asyncio's cancels the task, which then stops its query and removes its topics."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if current_thread() is main_thread():
            signal.signal(signal.SIGINT, before)


def read_records(
    session: SparkSession,
    servers: str,
    prefix: str,
    topics: Iterable[str],
    options: Mapping[str, str] = {},
) -> DataFrame:
    """The records of topics as a stream: topic, key and value as texts, and their time."""
    return (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", ",".join(f"{prefix}{topic}" for topic in topics))
        .options(**{**CLIENT, **options})
        .option("startingOffsets", "earliest")
        .load()
        .select(
            F.regexp_extract("topic", r"([^.]+)$", 1).alias("topic"),
            F.col("key").cast("string"),
            F.col("value").cast("string"),
            F.col("timestamp").alias("time"),
        )
    )


def read_table(session: SparkSession, servers: str, prefix: str, topic: str) -> DataFrame:
    """The records that a topic has now: key and value as texts, and their offset. In a streaming
    query, each batch reads them again."""
    return (
        session.read.format("kafka")
        .options(**CLIENT)
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", f"{prefix}{topic}")
        .load()
        .select(F.col("key").cast("string"), F.col("value").cast("string"), "offset")
    )


async def run_case(
    session: SparkSession,
    topics: Topics,
    prefix: str,
    case: Case,
    answer: Answer,
    options: Mapping[str, int],
) -> list[Rows]:
    """Publish a case step by step, to topics that begin with the prefix.

    Returns:
        The rows of each step, as the query emitted them.

    Raises:
        StreamingQueryException: the query failed.
    """
    await topics.create(f"{prefix}{topic}" for topic in case.topics)
    records = read_records(session, topics.servers, prefix, case.topics)
    if "table" in inspect.signature(answer).parameters:
        answer = partial(answer, table=partial(read_table, session, topics.servers, prefix))
    writer = answer(records, **options)
    emitted: Rows = []

    def collect(batch: DataFrame, _: int) -> None:
        emitted.extend(row.asDict() for row in batch.collect())

    with TemporaryDirectory(prefix="hometown-lesson-") as folder:
        # Before the query starts: otherwise its first batch has either them or nothing.
        await topics.publish(prefix, case.steps[0].records)
        async with running(writer.foreachBatch(collect), Path(folder)) as query:
            answers: list[Rows] = []
            batches = 0
            for number, step in enumerate(case.steps):
                if number:
                    await topics.publish(prefix, step.records)
                await asyncio.to_thread(query.processAllAvailable)
                progress = query.recentProgress
                rows = [*emitted, *to_dropped(progress[batches:])]
                if case.watermarks:
                    rows += to_watermarks(progress)[batches:]
                answers.append(rows)
                emitted.clear()
                batches = len(progress)
    return answers


@asynccontextmanager
async def running(writer: DataStreamWriter, folder: Path) -> AsyncIterator[StreamingQuery]:
    """Start a query with a checkpoint in a folder, and stop it at the end. An interrupt while it
    starts stops it as well: the thread that starts it goes on."""
    writer = writer.option("checkpointLocation", folder.as_uri())
    starting = asyncio.ensure_future(asyncio.to_thread(writer.start))
    try:
        yield await asyncio.shield(starting)
    finally:
        query = await starting
        await asyncio.to_thread(query.stop)


def to_dropped(batches: Iterable[Mapping[str, Any]]) -> list[Row]:
    """How many records the watermark has dropped, in the progress of batches; no row for none."""
    number = sum(
        operator["numRowsDroppedByWatermark"]
        for batch in batches
        for operator in batch["stateOperators"]
    )
    return [{"dropped": number}] if number else []


def to_watermarks(batches: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The two watermarks of each batch. Its own closes windows; that of the batch before decides
    which records are late, as what one operator emits when it closes a window must not be late for
    the next one (https://issues.apache.org/jira/browse/SPARK-40925)."""
    rows: list[Row] = []
    late = None
    for batch in batches:
        closed = to_watermark(batch["eventTime"]["watermark"])
        rows.append({"batch": batch["batchId"], "late_before": late, "closed_before": closed})
        late = closed
    return rows


def to_watermark(text: str) -> str | None:
    """None at first, when it is 1970."""
    instant = datetime.fromisoformat(text)
    return to_clock(instant) if instant.timestamp() else None
