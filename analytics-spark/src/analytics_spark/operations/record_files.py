"""`export --records`: the records of the topics as Parquet files, by topic and day.

A plain batch of Spark over the same logs that the job reads. A day is that of the record's time,
which is when its event was recorded. `topic=orders.v1/day=2016-11-11/records.parquet` is complete
or absent, and has the bytes of the records as they are: also of those that no contract allows.

Spark writes to a folder that readers ignore, and each finished file is renamed into its place. The
same records are the same bytes, so a file is replaced only when its day has more.
"""

import filecmp
import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from analytics_spark.job.blobs import column
from analytics_spark.job.log_reader import Range
from analytics_spark.job.session import open_session, run_in_background
from analytics_spark.job.source import TOPICS, Share, from_plain, get_log_reader, share, to_plain
from analytics_spark.job.versions import Mask
from analytics_spark.operations.export import NotExported, lock_folder, sync
from analytics_spark.settings import JobSettings
from shared.messaging import messages
from shared.runtime import telemetry

HEADERS = (
    *(messages.ID, messages.TYPE, messages.SOURCE, messages.TIME, messages.SPEC, messages.SUBJECT),
    *(messages.SCHEMA_VERSION, messages.STREAM_ID, messages.STREAM_VERSION),
    *(messages.CORRELATION_ID, messages.CAUSATION_ID, messages.PREVIOUS_VERSION),
    *(messages.CONTENT, telemetry.TRACEPARENT),
)
"""All that a relay sends; each is a column, which is null where a record has no such header."""

COLUMNS = {name: name.replace("-", "_") for name in HEADERS}

SCHEMA = "topic string, day date, partition int, offset bigint, time timestamp" + "".join(
    f", {name} binary" for name in ("key", "value", *COLUMNS.values())
)

FILE = "records.parquet"
UNFINISHED = ".unfinished"
"""A folder that readers of Parquet files ignore, on the same disk."""
TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
"""By default Spark writes them in an old form of its own."""

MICROSECONDS = 1000
"""In a millisecond, which is what a record's time has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Numbers of files, by what the export did, and of the records in all of them."""

    written: int
    unchanged: int
    removed: int
    records: int


class TopicRecords(DataSource):
    """Options: `brokers` (`Brokers.to_text`), `begins` and `ends`: offsets by topic and partition,
    in JSON."""

    @classmethod
    def name(cls) -> str:
        return "topic-records"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> "RecordReader":
        return RecordReader(self.options)


class RecordReader(DataSourceReader):
    """Reads the records between the begins and the ends."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._brokers = options["brokers"]
        self._begins = from_plain(json.loads(options["begins"]))
        self._ends = from_plain(json.loads(options["ends"]))

    def partitions(self) -> Sequence[InputPartition]:
        ranges = [
            Range(partition=each, first=self._begins[each], end=end)
            for each, end in self._ends.items()
        ]
        return [Share(each) for each in share(ranges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        for topic in TOPICS:
            ranges = [each for each in partition.ranges if each.partition.topic == topic]
            reader = get_log_reader(self._brokers)
            for records in reader.read(ranges, HEADERS, is_any):
                yield to_rows(topic, records)


def is_any(heads: pa.Table) -> Mask:
    """All records are wanted."""
    return np.ones(heads.num_rows, bool)


def to_rows(topic: str, records: pa.Table) -> pa.RecordBatch:
    """Records with the columns of SCHEMA, from those of `record_batches.to_table`."""
    milliseconds = column(records, "time").cast(pa.int64()).to_numpy()
    time = pa.array(milliseconds * MICROSECONDS).cast(pa.timestamp("us", "UTC"))
    columns = {
        "topic": pa.array([topic] * records.num_rows, pa.string()),
        "day": time.cast(pa.date32()),
        "partition": column(records, "partition"),
        "offset": column(records, "offset"),
        "time": time,
        "key": column(records, "key"),
        "value": column(records, "value"),
        **{COLUMNS[name]: column(records, name) for name in HEADERS},
    }
    return pa.RecordBatch.from_pydict(columns)


def run(settings: JobSettings, folder: Path, stop: threading.Event) -> Exported:
    """The command `export --records`: update the folder to the records that the topics have now.

    Raises:
        NotExported: another export is running, or the folder cannot be written.
        KafkaError, RecordsLost, PySparkException, Py4JJavaError: existing files are complete.
    """
    # Where the command runs, the files are written: so Spark is here as well.
    session = open_session(settings.model_copy(update={"spark_master": "local[2]"}))
    try:
        run_in_background(partial(cancel_at, stop, session))
        return export(session, settings.brokers.to_text(), folder)
    finally:
        session.stop()


def cancel_at(stop: threading.Event, session: SparkSession) -> None:
    """End what Spark does, so that the command ends."""
    stop.wait()
    session.sparkContext.cancelAllJobs()


def export(session: SparkSession, brokers: str, folder: Path) -> Exported:
    """As `run`, with a session that is open."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder):
            unfinished = folder / UNFINISHED
            shutil.rmtree(unfinished, ignore_errors=True)  # of an export that was killed
            write(read_topics(session, brokers), unfinished)
            done = put_in_place(unfinished, folder)
            shutil.rmtree(unfinished, ignore_errors=True)
            return done
    except OSError as error:
        raise NotExported(
            f"{error.filename or folder}: {error.strerror}: free some space or name another folder"
            " (--to), and repeat the command"
        ) from error


def read_topics(session: SparkSession, brokers: str) -> DataFrame:
    """All records up to those that are in the topics now."""
    reader = get_log_reader(brokers)
    session.dataSource.register(TopicRecords)
    return (
        session.read.format(TopicRecords.name())
        .option("brokers", brokers)
        .option("begins", json.dumps(to_plain(reader.get_begins(list(TOPICS)))))
        .option("ends", json.dumps(to_plain(reader.get_ends(list(TOPICS)))))
        .load()
    )


def write(records: DataFrame, folder: Path) -> None:
    """One file for each topic and day, its records in the order of the log."""
    records.sparkSession.conf.set(TIMESTAMPS, "TIMESTAMP_MICROS")
    (
        records.repartition("topic", "day")
        .sortWithinPartitions("topic", "day", "partition", "offset")
        .write.partitionBy("topic", "day")
        .parquet(folder.absolute().as_uri())
    )


def put_in_place(unfinished: Path, folder: Path) -> Exported:
    """Rename each file that is new or differs; remove those of days that have no records."""
    written, records = 0, 0
    wanted = set()
    for path in sorted(unfinished.glob("topic=*/day=*/*.parquet")):
        target = folder / path.parent.relative_to(unfinished) / FILE
        wanted.add(target)
        records += parquet.read_metadata(path).num_rows
        if not target.exists() or not filecmp.cmp(path, target, shallow=False):
            rename(path, target)
            written += 1
    removed = remove_others(folder, wanted)
    return Exported(
        written=written, unchanged=len(wanted) - written, removed=removed, records=records
    )


def rename(path: Path, target: Path) -> None:
    """Readers see the old file or the new one, no part, also after a power cut."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(path, target)
    sync(target.parent)


def remove_others(folder: Path, wanted: set[Path]) -> int:
    """Remove the files of days without records, as after `make republish` with another history."""
    others = [path for path in folder.glob(f"topic=*/day=*/{FILE}") if path not in wanted]
    for path in others:
        path.unlink()
        path.parent.rmdir()
    return len(others)
