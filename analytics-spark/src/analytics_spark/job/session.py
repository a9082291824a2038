"""The Spark session and its settings."""

import os
import shlex
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from analytics_spark.job.gateway import java_gateway
from analytics_spark.settings import SHUFFLE_PARTITIONS_DEFAULT, JobSettings

BATCHES_RETAINED_MIN = 20
"""Batches whose offsets and state files a checkpoint keeps."""

ROCKSDB_MEGABYTES = 128
"""For all state stores together, outside of the heap."""

LOOPBACK = "127.0.0.1"

ONE_AT_A_TIME = threading.RLock()

STREAMING = "spark.sql.streaming"
STATE_STORE = f"{STREAMING}.stateStore"

TRIM_MILLISECONDS = 5_000
"""How often Java returns to the system the memory that its compilers and its native libraries have
freed. The allocator keeps it otherwise, a part for each thread: a hundred megabytes."""

JAVA_OPTIONS = (
    *("-XX:+UseSerialGC", "-XX:NewRatio=1", "-Xss2m", "-XX:-UsePerfData"),
    # By default the memory of classes alone makes Java collect its whole heap twice in each start,
    # for a quarter of a second.
    "-XX:MetaspaceSize=256m",
    *((f"-XX:TrimNativeHeapInterval={TRIM_MILLISECONDS}",) if sys.platform == "linux" else ()),
    # The optimizing compiler (C2) makes a busy job 1.5 times as fast. With Java's own thresholds, a
    # fortieth of these, it would spend seconds of each start on code that is hardly used again.
    "-XX:Tier4InvocationThreshold=200000",
    "-XX:Tier4MinInvocationThreshold=100000",
    "-XX:Tier4CompileThreshold=600000",
    "-XX:Tier4BackEdgeThreshold=4000000",
)

CHECKPOINT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""How a checkpoint on a local disk is written. Spark's default runs the program `readlink` four
times for each file that it renames, and does not replace a file at once."""

WORKER_VARIABLES = {
    "PYTHONPATH": Path(__file__).parent / "no_archives",
    "MIMALLOC_PURGE_DELAY": 10_000,  # milliseconds; Arrow's allocator
    "MALLOC_MMAP_THRESHOLD_": 1 << 30,  # bytes; Python's, on Linux
    "MALLOC_TRIM_THRESHOLD_": 1 << 29,
}
"""The workers keep freed memory for the next batch. By default large blocks go back to the system
at once, and page faults then take nearly half of a worker's time. See also `no_archives`."""


def open_session(settings: JobSettings, *, writes_aot_cache: bool = False) -> SparkSession:
    """Start Spark in this process, or connect to the cluster that `spark_master` names.

    A process has one session and one Java: a second call waits for them, and returns the session.
    With `writes_aot_cache` Java does not read its cache, but writes it at its end.

    Raises:
        JavaEnded: Java could not be started.
    """
    if settings.spark_local_dirs is not None:
        os.environ["SPARK_LOCAL_DIRS"] = str(settings.spark_local_dirs)
    if is_local(settings):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    session = start_session(
        get_java_options(settings, writes_aot_cache), list_jars(settings), configuration(settings)
    )
    if is_local(settings):
        write_no_checksum_files(session)
    return session


def start_session(
    java_options: Sequence[str],
    jars: Sequence[Path],
    options: Mapping[str, str | int],
    output: IO[bytes] | None = None,
) -> SparkSession:
    """Start Java, with these jars, and a session with these options of Spark, unless they run.

    For `output` see `java_gateway`.

    Raises:
        JavaEnded: Java could not be started.
    """
    # Otherwise the workers run the first python3 on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder
    for name, value in options.items():
        builder = builder.config(name, value)
    with ONE_AT_A_TIME:
        if SparkContext._gateway is None:
            with java_gateway(java_options, jars, options, output) as java:
                session = builder.getOrCreate()
            gateway = SparkContext._gateway
            assert gateway is not None  # a session was opened
            gateway.proc = java  # as if PySpark had started it
        else:
            session = builder.getOrCreate()
    # A failure of a query is raised in Python, with its cause.
    session.sparkContext.setLogLevel("OFF")
    return session


def is_local(settings: JobSettings) -> bool:
    """Whether all of Spark is in this process and its children."""
    return settings.spark_master.startswith("local")


def write_no_checksum_files(session: SparkSession) -> None:
    """Hadoop writes a checksum file after the file that it belongs to. After a kill in between, a
    file that a batch writes again would not match its old checksum, and could not be read. State
    is still protected by the checksums of RocksDB and of zip files."""
    context = session.sparkContext
    jvm: Any = context._jvm
    files = jvm.org.apache.hadoop.fs.FileSystem
    files.getLocal(context._jsc.hadoopConfiguration()).setWriteChecksum(False)


def begin_session(settings: JobSettings) -> None:
    """Start Spark in the background: it takes as long as the imports of the operator."""
    run_in_background(partial(open_session, settings))


def run_in_background(work: Callable[[], object]) -> None:
    """Run in a daemon thread. An error is ignored: it occurs again, and is reported, on use."""

    def run() -> None:
        with suppress(Exception):
            work()

    threading.Thread(target=run, daemon=True).start()


def list_jars(settings: JobSettings) -> list[Path]:
    """The jars of Spark's Kafka connector."""
    return sorted(settings.spark_jars_dir.glob("*.jar"))


def get_java_options(settings: JobSettings, writes_aot_cache: bool = False) -> list[str]:
    """Options of the driver's Java."""
    return [
        f"-Xmx{settings.spark_driver_memory}",
        *JAVA_OPTIONS,
        *get_aot_options(settings.spark_aot_cache, writes_aot_cache),
        f"-Djava.io.tmpdir={settings.tmpdir or tempfile.gettempdir()}",
    ]


def configuration(settings: JobSettings) -> dict[str, str | int]:
    """Spark's settings that differ from its defaults."""
    return {
        "spark.app.name": "analytics-job",
        "spark.master": settings.spark_master,
        # Not as `spark.jars`, which Java's cache of classes cannot hold, and which Spark copies.
        "spark.executor.extraClassPath": os.pathsep.join(map(str, list_jars(settings))),
        **(get_local_options() if is_local(settings) else get_cluster_options(settings)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.daemon.module": "analytics_spark.job.workers",
        **{f"spark.executorEnv.{name}": str(value) for name, value in WORKER_VARIABLES.items()},
        # Otherwise the stateless stage's workers have a variable that the operator's do not, so
        # that each would have a pool of its own: four seconds of a cold start and 370 MB.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # A checkpoint that has another number keeps it.
        "spark.sql.shuffle.partitions": settings.shuffle_partitions or SHUFFLE_PARTITIONS_DEFAULT,
        f"{STREAMING}.minBatchesToRetain": BATCHES_RETAINED_MIN,
        # A batch without data would only move the watermark, which the next batch does as well.
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


def get_local_options() -> dict[str, str]:
    """The driver listens on the loopback interface only; its checkpoint is a local folder."""
    return {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        f"{STREAMING}.checkpointFileManagerClass": CHECKPOINT_FILES,
    }


def get_cluster_options(settings: JobSettings) -> dict[str, str]:
    """The executors of a cluster have the packages, the jars and the folder of the checkpoint in
    the same places as the driver."""
    host = settings.spark_driver_host or socket.gethostname()
    return {
        "spark.driver.host": host,
        "spark.driver.bindAddress": host if host == LOOPBACK else "0.0.0.0",  # noqa: S104
        # On a disk that they share, each file of a checkpoint goes into place at once, as in a
        # local one: no file of checksums comes after it.
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
        "spark.executor.memory": settings.spark_executor_memory,
        "spark.executor.extraJavaOptions": shlex.join(
            [*JAVA_OPTIONS, f"-Djava.io.tmpdir={tempfile.gettempdir()}"]
        ),
    }


def get_aot_options(cache: Path | None, writes: bool) -> list[str]:
    """Java's options for its ahead-of-time cache (JEP 514, 515); empty without one."""
    if cache is None:
        return []
    if writes:
        # Without a line for each of the many classes that a cache cannot hold.
        return [f"-XX:AOTCacheOutput={cache}", "-Xlog:disable", "-Xlog:all=error"]
    # A cache that does not fit is ignored.
    return [f"-XX:AOTCache={cache}", "-Xlog:aot=off"] if cache.exists() else []
