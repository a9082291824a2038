"""The records of the topics as Parquet files: all of them, byte for byte, each file whole."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from pyarrow import dataset
from pyspark.sql import SparkSession

from analytics_spark.job.source import TOPICS
from analytics_spark.operations import record_files
from analytics_spark.operations.export import NotExported, lock_folder
from analytics_spark.operations.record_files import FILE, HEADERS, UNFINISHED, Exported, export
from analytics_spark.settings import JobSettings
from shared.messaging.topics import TOPICS as DECLARED
from test_support.analytics.histories import Event, sample
from test_support.analytics.published import headers_of

FIRST_DAY, SECOND_DAY = date(2016, 11, 11), date(2016, 11, 12)
LAST_MOMENT = datetime(2016, 11, 11, 23, 59, 59, 999_000, tzinfo=UTC)
FIRST_MOMENT = datetime(2016, 11, 12, tzinfo=UTC)
KILLED_SECONDS_MAX = 180

Record = tuple[Any, ...]


class Topics:
    """What a test writes, and what any consumer finds."""

    def __init__(self, servers: str) -> None:
        self._servers = servers

    def publish(self, events: Sequence[Event], at: datetime) -> None:
        records = [
            (event.topic, event.value, event.key.encode(), headers_of(event)) for event in events
        ]
        asyncio.run(self._send(records, at))

    def publish_garbage(self, at: datetime) -> None:
        """Records that no contract allows: they belong to the raw layer as well."""
        records = [
            ("orders.v1", b"\x00\xff garbage", None, []),
            ("orders.v1", None, b"a tombstone", [("x", b"1"), ("ce_id", b"first")]),
            ("orders.v1", b"", b"", [("ce_type", b"\xff")]),
        ]
        asyncio.run(self._send(records, at))

    async def _send(self, records: Sequence[Any], at: datetime) -> None:
        milliseconds = round(at.timestamp() * 1000)
        async with AIOKafkaProducer(
            bootstrap_servers=self._servers, compression_type="zstd"
        ) as client:
            for topic, value, key, headers in records:
                await client.send(topic, value, key, timestamp_ms=milliseconds, headers=headers)

    def read(self) -> list[Record]:
        return asyncio.run(self._read())

    async def _read(self) -> list[Record]:
        places = [
            TopicPartition(name, number)
            for name in TOPICS
            for number in range(DECLARED[name].partitions)
        ]
        found: list[Record] = []
        async with AIOKafkaConsumer(
            bootstrap_servers=self._servers, auto_offset_reset="earliest"
        ) as client:
            client.assign(places)
            ends = await client.end_offsets(places)
            while any([await client.position(place) < ends[place] for place in places]):
                for batch in (await client.getmany(timeout_ms=200)).values():
                    found += [to_tuple(each) for each in batch]
        return sorted(found, key=lambda record: (record[0], record[2], record[3]))


def to_tuple(record: Any) -> Record:
    headers: dict[str, bytes] = {}
    for name, value in record.headers:
        headers.setdefault(name, value)
    at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    place = (record.topic, at.date(), record.partition, record.offset, at)
    return (*place, record.key, record.value, *(headers.get(name) for name in HEADERS))


@pytest.fixture
def topics(settings: JobSettings) -> Topics:
    """Empty, as those of a job."""
    return Topics(settings.kafka_bootstrap_servers)


@pytest.fixture
def write(spark: SparkSession, settings: JobSettings, tmp_path: Path) -> Any:
    return lambda: export(spark, settings.brokers.to_text(), tmp_path / "records")


def read_by_duckdb(folder: Path) -> list[Record]:
    """What a reader finds who knows nothing of us."""
    columns = ["partition", '"offset"', '"time"', "key", "value", *record_files.COLUMNS.values()]
    rows = duckdb.execute(
        f"""
        SELECT topic, day, {", ".join(columns)}
        FROM read_parquet('{folder}/topic=*/day=*/*.parquet', hive_partitioning = true)
        """
    ).fetchall()
    found = [(*row[:4], row[4].astimezone(UTC), *row[5:]) for row in rows]
    return sorted(found, key=lambda record: (record[0], record[2], record[3]))


def list_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob(f"*/{FILE}")}


def test_the_files_have_every_record_of_the_topics_byte_for_byte(
    topics: Topics, write: Any, tmp_path: Path
) -> None:
    topics.publish(sample(), LAST_MOMENT)
    topics.publish_garbage(FIRST_MOMENT)

    done = write()

    expected = topics.read()
    assert read_by_duckdb(tmp_path / "records") == expected
    assert done == Exported(written=4, unchanged=0, removed=0, records=len(expected))
    assert list_files(tmp_path / "records").keys() == {
        f"topic={topic}/day={day}/{FILE}"
        for topic, day in (
            *((topic, FIRST_DAY) for topic in TOPICS),
            ("orders.v1", SECOND_DAY),
        )
    }
    [(ids,)] = duckdb.execute(
        f"""
        SELECT count(DISTINCT ce_streamid)
        FROM read_parquet('{tmp_path}/records/topic=orders.v1/*/*.parquet')
        """
    ).fetchall()
    assert ids == 16


def test_repeated_it_writes_only_days_that_have_more(
    topics: Topics, write: Any, tmp_path: Path
) -> None:
    topics.publish(sample(), LAST_MOMENT)
    write()
    before = list_files(tmp_path / "records")

    assert write().written == 0
    assert list_files(tmp_path / "records") == before
    topics.publish_garbage(FIRST_MOMENT)
    done = write()

    after = list_files(tmp_path / "records")
    assert (done.written, done.unchanged, done.removed) == (1, 3, 0)
    assert {name: after[name] for name in before} == before
    assert read_by_duckdb(tmp_path / "records") == topics.read()


def test_a_day_without_records_has_no_file_any_more(
    topics: Topics, write: Any, tmp_path: Path
) -> None:
    """As after another history was published."""
    topics.publish(sample(), LAST_MOMENT)
    other = tmp_path / "records/topic=orders.v1/day=2016-11-10" / FILE
    write()
    other.parent.mkdir()
    other.write_bytes(b"of before")

    assert write().removed == 1
    assert not other.parent.exists()


def test_an_end_between_two_renames_leaves_whole_files_and_is_made_up_for(
    topics: Topics, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second rename does not happen; the folder of unfinished files stays, as after a kill."""
    topics.publish(sample(), LAST_MOMENT)
    folder, count = tmp_path / "records", 0
    plain = record_files.rename

    def ends(path: Path, target: Path) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        plain(path, target)

    with monkeypatch.context() as killed:
        killed.setattr(record_files, "rename", ends)
        with pytest.raises(KeyboardInterrupt):
            write()

    assert len(list((folder / UNFINISHED).rglob("*.parquet"))) == 2
    [found] = {row[0] for row in read_by_duckdb(folder)}
    assert read_by_duckdb(folder) == [row for row in topics.read() if row[0] == found]
    # Also for a reader that takes all files below a folder.
    assert dataset.dataset(folder, format="parquet").files == [
        str(folder / f"topic={found}/day={FIRST_DAY}/{FILE}")
    ]
    assert write().written == 2
    assert not (folder / UNFINISHED).exists()
    assert read_by_duckdb(folder) == topics.read()


def test_two_exports_at_once_are_refused(topics: Topics, write: Any, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()

    with lock_folder(folder), pytest.raises(NotExported, match="another export writes"):
        write()


@pytest.mark.long
def test_a_killed_command_leaves_no_part_of_a_file_and_the_next_one_writes_all(
    topics: Topics, settings: JobSettings, tmp_path: Path
) -> None:
    topics.publish(sample(), LAST_MOMENT)
    command = [sys.executable, "-m", "analytics_spark", "export", "--records"]
    environment = os.environ | {
        "ENVIRONMENT": "development",
        "DATABASE_URL": settings.database_dsn,
        "KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers,
        "CHECKPOINT_DIR": str(settings.checkpoint_dir),
        "EXPORT_DIR": str(tmp_path / "export"),
        "SPARK_AOT_CACHE": str(settings.spark_aot_cache),
    }
    folder = tmp_path / "records"
    process = subprocess.Popen(command, env=environment)
    deadline = time.monotonic() + KILLED_SECONDS_MAX
    # Spark has begun to write.
    while not any((folder / UNFINISHED).glob("**/part-*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    for path in folder.glob(f"topic=*/day=*/{FILE}"):
        assert dataset.dataset(path).count_rows() > 0

    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr
    records = topics.read()
    assert f" removed, {len(records)} records: {folder}\n" in ended.stdout
    assert read_by_duckdb(folder) == records
