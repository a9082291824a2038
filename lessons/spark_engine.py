"""Spark as an engine of lessons: one plain session, and a streaming query for each case."""

import asyncio
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from analytics_spark.job.gateway import java_gateway
from fetching.jars import SPARK_KAFKA_JARS, fetch
from lessons.broker import PREFIX, Topics
from lessons.lesson import Case, Row, Rows
from local_stack.settings import Settings

JAVA_OPTIONS = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:-UsePerfData")

QUERIES_MAX = 4
"""At a time: most of a small batch is planning and files, for which one query leaves cores idle."""

Answer = Callable[..., DataStreamWriter]
"""Makes a query of a stream of records, with the columns topic, key, value (texts) and time."""

CONFIGURATION: Mapping[str, str] = {
    "spark.app.name": "lessons",
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "analytics_spark.job.workers",
    "spark.sql.session.timeZone": "UTC",
    # Two cores, and a lesson has few keys: with the default of 200, each batch takes seconds.
    "spark.sql.shuffle.partitions": "2",
    # Timers and states of several kinds need it.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A batch writes what it has changed, not all files of its state.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Its default looks at a rename with two programs of the system, a dozen times for each batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
}


@contextmanager
def open_session() -> Iterator[SparkSession]:
    """Start Spark with its source of Kafka topics, and stop it at the end.

    Raises:
        JavaEnded: Java could not be started: lessons.log in the run folder has the reason.
        Failure: the jars of the source could not be fetched.
    """
    settings = Settings()
    jars = fetch(SPARK_KAFKA_JARS, settings, lambda line: None)
    log = settings.run_dir / "lessons.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder
    for name, value in CONFIGURATION.items():
        builder = builder.config(name, value)
    with (
        log.open("wb") as written,
        java_gateway(JAVA_OPTIONS, CONFIGURATION, jars, written) as java,
    ):
        session = builder.getOrCreate()
    gateway = SparkContext._gateway
    assert gateway is not None  # a session was opened
    gateway.proc = java  # as if PySpark had started it
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def find_answer(lesson: str, function: str) -> Answer:
    found: Answer = getattr(import_module(f"lessons.{lesson}.spark"), function)
    return found


def read_records(session: SparkSession, servers: str, prefix: str, case: Case) -> DataFrame:
    """The records of a case's topics as a stream: topic, key and value as texts, and their time."""
    topics = ",".join(f"{prefix}{topic}" for topic in case.topics)
    return (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topics)
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
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", f"{prefix}{topic}")
        .load()
        .select(F.col("key").cast("string"), F.col("value").cast("string"), "offset")
    )


async def run_cases(
    session: SparkSession,
    topics: Topics,
    lesson: str,
    cases: Sequence[tuple[Case, str]],
    options: Mapping[str, Any],
) -> list[list[Rows]]:
    """Publish each case step by step, for a function each; several queries run at a time.

    Returns:
        For each case the rows of each step, as the query emitted them.

    Raises:
        StreamingQueryException: a query failed.
    """
    prefix = f"{PREFIX}{lesson}.spark."
    running = asyncio.Semaphore(QUERIES_MAX)

    async def run(number: int, case: Case, function: str) -> list[Rows]:
        async with running:
            answer = find_answer(lesson, function)
            return await run_case(session, topics, f"{prefix}{number}.", case, answer, options)

    await topics.remove(prefix)
    answers = await asyncio.gather(*(run(number, *each) for number, each in enumerate(cases)))
    await topics.remove(prefix)
    return answers


async def run_case(
    session: SparkSession,
    topics: Topics,
    prefix: str,
    case: Case,
    answer: Answer,
    options: Mapping[str, Any],
) -> list[Rows]:
    await topics.create({f"{prefix}{topic}": case.partitions for topic in case.topics})
    if "table" in inspect.signature(answer).parameters:
        options = {**options, "table": partial(read_table, session, topics.servers, prefix)}
    writer = answer(read_records(session, topics.servers, prefix, case), **options)
    emitted: Rows = []

    def collect(batch: DataFrame, _: int) -> None:
        emitted.extend(row.asDict() for row in batch.collect())

    with tempfile.TemporaryDirectory(prefix="hometown-lesson-") as folder:
        checkpoint = Path(folder).as_uri()
        started = writer.foreachBatch(collect).option("checkpointLocation", checkpoint)
        query = await asyncio.to_thread(started.start)
        try:
            answers: list[Rows] = []
            for step in case.steps:
                emitted.clear()
                seen = count_dropped(query.recentProgress)
                await topics.publish(prefix, step.records)
                await asyncio.to_thread(query.processAllAvailable)
                dropped = count_dropped(query.recentProgress) - seen
                answers.append([*emitted, *to_dropped(dropped)])
        finally:
            await asyncio.to_thread(query.stop)
    return answers


def to_dropped(number: int) -> list[Row]:
    return [{"dropped": number}] if number else []


def count_dropped(progress: Any) -> int:
    """How many records the watermark has dropped, in all batches."""
    return sum(
        operator["numRowsDroppedByWatermark"]
        for batch in progress
        for operator in batch["stateOperators"]
    )
