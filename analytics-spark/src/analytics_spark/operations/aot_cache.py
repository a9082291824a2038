"""Java's ahead-of-time (AOT) cache of the job's classes, with which Spark starts sooner.

Java maps the cache into memory instead of finding, reading, verifying and linking fifteen thousand
classes (JEP 483, 514), and knows from it which methods are worth compiling (JEP 515). It fits one
Java with its options and the jars of one Spark; Java ignores a cache that does not fit.
"""

import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen, TimeoutExpired

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from analytics_spark.job import query
from analytics_spark.job.pack import PACKED, pack
from analytics_spark.job.records import HEADERS, select
from analytics_spark.job.session import open_session
from analytics_spark.job.topics import ORDERS
from analytics_spark.settings import JobSettings

BATCH_SECONDS_MAX = 120
WRITE_SECONDS_MAX = 400
"""A second Java writes it: half a minute, and several on a busy machine."""

NOWHERE = "postgresql://nobody@127.0.0.1/nothing"

RECORD = pa.table(
    {
        **{name: pa.array([None], pa.binary()) for name in ("key", "value", *HEADERS)},
        **{name: pa.array([0]) for name in ("offset", "time")},
        "partition": pa.array([0], pa.int32()),
    }
)
"""Of no known type, so it is dead-lettered."""


class NoTopics(DataSource):
    """A source that needs no Kafka: one bad record in a batch, packed as any other."""

    @classmethod
    def name(cls) -> str:
        return "no-topics"

    def schema(self) -> str:
        return PACKED

    def streamReader(self, schema: StructType) -> "NoTopicsReader":
        return NoTopicsReader()


class NoTopicsReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:
        return {"record": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"record": start["record"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from pack(iter([select(RECORD, 1)]), topic=ORDERS, buckets=1)


class NoCache(Exception):
    """No cache was written; the message has the reason."""


def make(file: Path) -> None:
    """Run the job's query, without its servers, in a Java that writes its cache at exit.

    Raises:
        NoCache: the query or Java failed; an existing file stays unchanged.
        OSError: the folder of `file` cannot be written.
    """
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as folder:
        made = Path(folder, file.name)
        settings = JobSettings(
            environment="development",
            database_url=NOWHERE,
            checkpoint_dir=Path(folder, "checkpoint"),
            spark_aot_cache=made,
        )
        spark = open_session(settings, writes_aot_cache=True)
        gateway = SparkContext._gateway
        assert gateway is not None  # a session was opened
        try:
            run_a_batch(spark, settings)
        finally:
            spark.stop()
            end_java(gateway.proc)
        if not made.exists():
            raise NoCache("Java wrote no cache: is there space on the disk?")
        os.replace(made, file)


def run_a_batch(spark: SparkSession, settings: JobSettings) -> None:
    has_run = threading.Event()

    def sink(frame: DataFrame, batch_id: int) -> None:
        frame.collect()
        has_run.set()

    live = query.start(query.outcomes(spark, settings, read_no_topics), sink, settings)
    try:
        if not has_run.wait(BATCH_SECONDS_MAX):
            raise NoCache(f"no batch ran in {BATCH_SECONDS_MAX} s: {live.exception()}")
    finally:
        live.stop()


def read_no_topics(spark: SparkSession, settings: JobSettings) -> DataFrame:
    spark.dataSource.register(NoTopics)
    return spark.readStream.format(NoTopics.name()).load()


def end_java(java: Popen[bytes]) -> None:
    """Close Java's standard input: then it writes the cache and exits.

    Raises:
        NoCache: it took too long; Java is killed.
    """
    assert java.stdin is not None  # PySpark keeps Java alive by it
    java.stdin.close()
    try:
        java.wait(WRITE_SECONDS_MAX)
    except TimeoutExpired:
        java.kill()
        raise NoCache(f"Java did not exit within {WRITE_SECONDS_MAX} s") from None
