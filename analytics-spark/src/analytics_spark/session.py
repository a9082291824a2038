"""The Spark session and its few settings."""

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
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

# C1 alone halves the time to the first batch; C2 would pay only after minutes under full load.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss2m -XX:-UsePerfData"


def open_session(settings: JobSettings) -> SparkSession:
    """Start Spark in this process, or connect to the cluster that `spark_master` names.

    There is one session in a process: who comes second waits for it, and gets it.
    """
    # Otherwise the workers start whatever python3 is on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("analytics-job").master(settings.spark_master)
    for name, value in configuration(settings).items():
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


def configuration(settings: JobSettings) -> dict[str, str | int]:
    """Spark's settings; what is not here is Spark's default."""
    jars = sorted(str(jar) for jar in settings.spark_jars_dir.glob("*.jar"))
    return {
        "spark.jars": ",".join(jars),
        "spark.driver.memory": settings.spark_driver_memory,
        # Spark leaves files there when it is killed, so it gets the folder that this process has.
        "spark.driver.extraJavaOptions": (
            f'{JAVA_OPTIONS} "-Djava.io.tmpdir={tempfile.gettempdir()}"'
        ),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.daemon.module": "analytics_spark.workers",
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
