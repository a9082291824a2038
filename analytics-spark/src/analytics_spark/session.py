"""The Spark session and its few settings."""

import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from analytics_spark.settings import SHUFFLE_PARTITIONS_DEFAULT, JobSettings

T = TypeVar("T")

BATCHES_RETAINED_MIN = 20
"""Batches whose offsets and state files a checkpoint keeps."""

ROCKSDB_MEGABYTES = 128
"""For all state stores together, outside of the heap."""

STREAMING = "spark.sql.streaming"
STATE_STORE = f"{STREAMING}.stateStore"

JAVA_OPTIONS = (
    *("-XX:+UseSerialGC", "-XX:NewRatio=1", "-Xss2m", "-XX:-UsePerfData"),
    # The thorough compiler (C2) makes a loaded job half as quick again. With Java's own thresholds,
    # a fortieth of these, it would take seconds of a start for code that is hardly used again.
    "-XX:Tier4InvocationThreshold=200000",
    "-XX:Tier4MinInvocationThreshold=100000",
    "-XX:Tier4CompileThreshold=600000",
    "-XX:Tier4BackEdgeThreshold=4000000",
)

WORKER_VARIABLES = {
    "MIMALLOC_PURGE_DELAY": 10_000,  # milliseconds; Arrow's allocator
    "MALLOC_MMAP_THRESHOLD_": 1 << 30,  # bytes; Python's, on Linux
    "MALLOC_TRIM_THRESHOLD_": 1 << 29,
}
"""The workers keep what memory they have freed, for the next batch. By default big blocks go back
to the system at once, and its pages then cost nearly half of a worker's time."""


def open_session(settings: JobSettings, *, writes_class_archive: bool = False) -> SparkSession:
    """Start Spark in this process, or connect to the cluster that `spark_master` names.

    There is one session in a process: who comes second waits for it, and gets it. With
    `writes_class_archive` Java does not read its archive: it writes it when it ends.
    """
    # Otherwise the workers start whatever python3 is on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("analytics-job").master(settings.spark_master)
    for name, value in configuration(settings, writes_class_archive).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # A query's failure is logged once, by us, with its cause.
    session.sparkContext.setLogLevel("OFF")
    return session


def begin_session(settings: JobSettings) -> None:
    """Start Spark in the background: it takes as long as the imports of the operator."""
    in_background(partial(open_session, settings))


def begin_workers(session: SparkSession) -> None:
    """Start the Python workers in the background: it takes as long as planning the query."""
    frame = session.range(1, numPartitions=1).mapInArrow(unchanged, "id long")
    in_background(frame.collect)


def in_background(work: Callable[[], object]) -> None:
    """What fails there fails again, and is told, where it is needed."""

    def run() -> None:
        with suppress(Exception):
            work()

    threading.Thread(target=run, daemon=True).start()


def unchanged(batches: Iterator[T]) -> Iterator[T]:
    return batches


def configuration(
    settings: JobSettings, writes_class_archive: bool = False
) -> dict[str, str | int]:
    """Spark's settings; what is not here is Spark's default."""
    jars = os.pathsep.join(sorted(str(jar) for jar in settings.spark_jars_dir.glob("*.jar")))
    java_options = [
        *JAVA_OPTIONS,
        *class_sharing(settings.spark_class_archive, writes_class_archive),
        # Spark leaves files there when it is killed, so it gets the folder that this process has.
        f"-Djava.io.tmpdir={tempfile.gettempdir()}",
    ]
    return {
        # Not as `spark.jars`, which Java's archive of classes cannot hold, and which Spark copies.
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.extraJavaOptions": shlex.join(java_options),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.daemon.module": "analytics_spark.workers",
        **{f"spark.executorEnv.{name}": value for name, value in WORKER_VARIABLES.items()},
        # Otherwise the stateless stage's workers have a variable that the operator's do not, so
        # that each would have a pool of its own: four seconds of a cold start and 370 MB.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # A checkpoint that has another number keeps it.
        "spark.sql.shuffle.partitions": settings.shuffle_partitions or SHUFFLE_PARTITIONS_DEFAULT,
        f"{STREAMING}.minBatchesToRetain": BATCHES_RETAINED_MIN,
        # A batch without data would only move the watermark, which the next one does as well.
        f"{STREAMING}.noDataMicroBatches.enabled": "false",
        f"{STATE_STORE}.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        f"{STATE_STORE}.encodingFormat": "avro",
        f"{STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{STATE_STORE}.rocksdb.trackTotalNumberOfRows": "false",
        f"{STATE_STORE}.rocksdb.boundedMemoryUsage": "true",
        f"{STATE_STORE}.rocksdb.maxMemoryUsageMB": ROCKSDB_MEGABYTES,
    }


def class_sharing(archive: Path | None, writes: bool) -> list[str]:
    """What Java is told of its archive of classes."""
    if archive is None:
        return []
    if writes:
        # Without a line for each of the many classes that an archive cannot hold.
        return [f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable", "-Xlog:all=error"]
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
