"""Java's ahead-of-time (AOT) cache of the job's classes, with which Spark starts sooner.

Java maps the cache into memory instead of finding, reading, verifying and linking fifteen thousand
classes (JEP 483, 514), and knows from it which methods are worth compiling (JEP 515). It fits one
Java with its options and one list of jars; Java ignores a cache that does not fit.
"""

import os
import tempfile
import threading
from pathlib import Path
from subprocess import Popen, TimeoutExpired

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from analytics_spark.job import query
from analytics_spark.job.session import open_session
from analytics_spark.job.topics import Topic
from analytics_spark.settings import JobSettings

BATCH_SECONDS_MAX = 120
WRITE_SECONDS_MAX = 400
"""A second Java writes it: half a minute, and several on a busy machine."""

NOWHERE = "postgresql://nobody@127.0.0.1/nothing"

RECORDS = """
    SELECT cast('' AS binary) AS key, cast('' AS binary) AS value, 0 AS partition,
        value AS offset, timestamp,
        array(struct('ce_type' AS key, cast('' AS binary) AS value)) AS headers
    FROM {source}
"""
"""Records with the columns of Kafka's source. Their content does not matter: all are bad."""


class NoCache(Exception):
    """No cache was written; the message has the reason."""


def make(file: Path, spark_jars_dir: Path) -> None:
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
            spark_jars_dir=spark_jars_dir,
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
        with made.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(made, file)


def run_a_batch(spark: SparkSession, settings: JobSettings) -> None:
    has_run = threading.Event()

    def sink(frame: DataFrame, batch_id: int) -> None:
        frame.collect()
        has_run.set()

    live = query.start(query.outcomes(spark, settings, read_dummy_records), sink, settings)
    try:
        if not has_run.wait(BATCH_SECONDS_MAX):
            raise NoCache(f"no batch ran in {BATCH_SECONDS_MAX} s: {live.exception()}")
    finally:
        live.stop()


def read_dummy_records(spark: SparkSession, topic: Topic, settings: JobSettings) -> DataFrame:
    """A source of records that needs no Kafka."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", settings.buckets)
    return spark.sql(RECORDS, source=reader.load())


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
