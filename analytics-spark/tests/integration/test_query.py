"""The vectors on the real thing: Kafka, Spark and PostgreSQL."""

import os
import time
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest
from aiokafka.errors import KafkaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from analytics_spark.job import dead_letters, query, resting, sink
from analytics_spark.job.gateway import CONNECTION
from analytics_spark.job.generations import FIRST
from analytics_spark.job.writer import NotTheWriter
from analytics_spark.settings import JobSettings
from test_support.analytics.histories import (
    HOUR,
    USERS,
    Event,
    at,
    cancelled,
    confirmed,
    moved,
    origin_corrected,
    registered,
    sample,
)
from test_support.analytics.running_job import RunningJob, Sink, publish
from test_support.first_and_long import first_and_long

SAMPLE = (4, 4, 12, 44_506_56)


def test_v1_v2_the_sample_counts_once_whatever_is_repeated(live: RunningJob) -> None:
    with live.running():
        live.read(*sample())
        assert live.hour(HOUR) == SAMPLE
        assert live.epoch("counted") == 16

        live.read(*sample())
        assert live.hour(HOUR) == SAMPLE
        assert (live.epoch("counted"), live.epoch("duplicates")) == (16, 16)


def test_what_spark_plans_has_the_time_from_which_the_rest_is_computed(
    live: RunningJob, settings: JobSettings
) -> None:
    began_at = time.time()
    live.read(*sample())

    checkpoint = FIRST.get_checkpoint(settings.checkpoint_dir)
    pace = resting.read_pace(checkpoint, 0, time.time(), {"orders.v1": 1})
    planned_at = checkpoint.get_planned_at(0)
    assert planned_at is not None
    # Spark's clock has whole milliseconds.
    assert began_at - 0.001 <= planned_at <= time.time()
    assert pace.is_catching_up


def test_v5_v7_v10_v11_what_becomes_known_later_corrects_the_cells(live: RunningJob) -> None:
    with live.running():
        live.read(*sample(), confirmed("early", "Tom", ("iphone", 1), ordered_at=at(40)))
        assert live.hour(HOUR) == SAMPLE

        live.read(registered("Tom", "BJ"))
        assert live.hour(HOUR)[:2] == (5, 5)

        live.read(moved("Tom", "SH", since=at(30)))
        assert live.hour(HOUR) == SAMPLE

        live.read(origin_corrected("iphone", "SH"))
        assert live.hour(HOUR)[:2] == (4, 5)  # without Jack, with Tom's and a second one of Lily

        live.read(cancelled("early", "Tom", ("iphone", 1), ordered_at=at(40)))
        assert live.hour(HOUR)[:2] == (3, 4)


def test_v8_v9_an_order_is_counted_within_the_grace_and_dropped_after_it(live: RunningJob) -> None:
    with live.running():
        live.read(*sample(), confirmed("later", "Lily", ("iphone", 1), ordered_at=at(30, hour=1)))
        live.read(confirmed("within", "Jack", ("iphone", 1), ordered_at=at(50)))
        assert live.hour(HOUR)[:2] == (4, 5)
        assert live.epoch("late") == 0

        live.read(confirmed("much later", "Lily", ("iphone", 1), ordered_at=at(hour=5)))
        live.read(confirmed("too late", "Jack", ("iphone", 1), ordered_at=at(51)))
        assert live.hour(HOUR)[:2] == (4, 5)
        assert live.epoch("late") == 1
        assert live.epoch("watermark") == at(hour=3)


BROKEN = confirmed("broken", "Jack", ("iphone", 1), ordered_at=at(10))


def test_bad_records_are_dead_lettered_and_stop_nothing(live: RunningJob) -> None:
    document, key = "the value does not match the schema", "the key is not the user_id"
    version = "unknown event type or version"
    broken = [
        (replace(BROKEN, data=b"\xff garbage"), document),
        (replace(BROKEN, data=b""), document),
        (replace(BROKEN, type=""), version),
        (replace(BROKEN, schema_version=2), version),
        (replace(BROKEN, key="another user"), key),
        (replace(BROKEN, data=BROKEN.value + BROKEN.value), document),
        (replace(registered("Lily", "BJ"), data=b"{}"), key),
    ]

    live.read(*sample()[:8], *(event for event, _ in broken), *sample()[8:])

    assert live.hour(HOUR) == SAMPLE
    assert live.epoch("bad") == len(broken)
    letters = [
        (letter.topic, letter.key.decode(), letter.value, *letter.headers[:-3])
        for letter in live.dead_letters()
    ]
    wanted = [
        (
            f"{event.topic}.analytics-job.dlq",
            event.key,
            event.value,
            *event.headers,
            ("dlq_reason", reason.encode()),
        )
        for event, reason in broken
    ]
    assert sorted(letters) == sorted(wanted)


def test_a_batch_is_not_counted_before_its_bad_records_are_dead_lettered(
    live: RunningJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise they would never be read again."""

    async def refuse(servers: str, places: object) -> None:
        raise KafkaError("no such topic")

    with monkeypatch.context() as patch:
        patch.setattr(dead_letters, "copy", refuse)
        with pytest.raises(StreamingQueryException, match="DeadLettersNotWritten"):
            live.read(*sample(), replace(BROKEN, data=b"{"))
    assert live.hour(HOUR) == (0, 0, 0, 0)

    live.read()
    assert live.hour(HOUR) == SAMPLE
    assert len(live.dead_letters()) == 1


def test_events_of_other_types_are_skipped(live: RunningJob) -> None:
    other = Event(topic="orders.v1", key="any", type="order-placed", data=b"not even JSON")

    live.read(*sample(), other)

    assert live.hour(HOUR) == SAMPLE
    assert live.epoch("bad") == 0


def test_tables_that_are_lost_under_their_checkpoint_are_refused(
    live: RunningJob, reader: psycopg.Connection
) -> None:
    """What the writer knows of a checkpoint holds for one that Spark wrote."""
    live.read(*sample())
    reader.execute("SET search_path TO generation_1")
    reader.execute("TRUNCATE cells, epochs, batches")

    with pytest.raises(NotTheWriter, match="are of no batch"):
        live.read(*sample())


def fails_after_commit(plain: Sink) -> Sink:
    """The process dies between PostgreSQL's commit and Spark's."""

    def write(frame: DataFrame, batch_id: int) -> None:
        plain(frame, batch_id)
        raise RuntimeError("died after the commit")

    return write


def fails_before_commit(plain: Sink) -> Sink:
    def write(frame: DataFrame, batch_id: int) -> None:
        frame.collect()
        raise RuntimeError("died before the commit")

    return write


def test_a_batch_run_again_after_its_commit_counts_once(live: RunningJob) -> None:
    read_with_failures(live)

    assert live.hour(HOUR)[:2] == (4, 5)
    assert live.epoch("counted") == 17


def test_without_the_epoch_a_batch_run_again_counts_twice(
    live: RunningJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = "WHERE epoch.batch_id < excluded.batch_id"
    monkeypatch.setattr(sink, "ADVANCE_EPOCH", sink.ADVANCE_EPOCH.replace(fence, ""))
    monkeypatch.setattr(sink, "INSERT_BATCH", f"{sink.INSERT_BATCH} ON CONFLICT DO NOTHING")

    read_with_failures(live)

    assert live.hour(HOUR)[:2] == (4, 9)


def test_a_query_goes_on_after_a_kill_of_postgresql_and_counts_once(
    spark: SparkSession, settings: JobSettings, live: RunningJob, postgres_dsn: str
) -> None:
    with live.running() as running:
        live.read(*sample())
        kill_server(postgres_dsn)
        publish(settings.kafka_bootstrap_servers, sample())
        publish(
            settings.kafka_bootstrap_servers,
            [confirmed("next", "Jack", ("iphone", 1), ordered_at=at(20))],
        )
        running.processAllAvailable()

        assert running.isActive
    with psycopg.connect(settings.database_dsn, autocommit=True) as reader:
        again = RunningJob(spark, settings, reader)
        assert again.hour(HOUR)[:2] == (4, 5)
        assert (again.epoch("counted"), again.epoch("duplicates")) == (17, 16)


def kill_server(postgres_dsn: str) -> None:
    """kill -9; its supervisor starts it again."""
    with psycopg.connect(postgres_dsn) as superuser:
        row = superuser.execute("SHOW data_directory").fetchone()
        assert row is not None
    pid = int((Path(row[0]) / "postmaster.pid").read_text().split()[0])
    psutil.Process(pid).kill()


def read_with_failures(live: RunningJob) -> None:
    """The sample and one order more, with a death before and one after the first commit."""
    with pytest.raises(StreamingQueryException, match="died before the commit"):
        live.read(*sample(), wrap=fails_before_commit)
    with pytest.raises(StreamingQueryException, match="died after the commit"):
        live.read(wrap=fails_after_commit)
    live.read(confirmed("next", "Jack", ("iphone", 1), ordered_at=at(20)))


def test_no_file_of_a_checkpoint_has_a_second_one_that_a_kill_may_lose(
    live: RunningJob, settings: JobSettings
) -> None:
    """Hadoop renames its checksum after the file."""
    live.read(*sample())

    names = {each.name for each in settings.checkpoint_dir.rglob("*")}
    assert "1.changelog" in names
    assert {name for name in names if name.endswith(".crc")} == set()


def test_both_stages_have_the_same_workers(live: RunningJob) -> None:
    """Another pool would cost four seconds of a cold start, and 370 MB."""
    live.read(*sample())

    mine = {each.pid for each in psutil.Process().children(recursive=True)}
    family = [each for each in psutil.process_iter(["cmdline", "name", "ppid"]) if each.pid in mine]
    java = {each.pid for each in family if each.info["name"] == "java"}
    workers = [
        each for each in family if "analytics_spark.job.workers" in (each.info["cmdline"] or [])
    ]
    forked_by = {each.info["ppid"] for each in workers} - java
    assert len(forked_by) == 1


@pytest.mark.skipif(
    not hasattr(psutil.Process, "memory_maps"), reason="only Linux lists memory maps"
)
def test_java_takes_up_its_aot_cache(spark: SparkSession, aot_cache_file: Path) -> None:
    """It says nothing when one does not fit, and only starts slower."""
    family = psutil.Process().children(recursive=True)
    [java] = [each for each in family if each.name() == "java"]
    assert str(aot_cache_file) in {each.path for each in java.memory_maps()}


def test_a_child_process_does_not_find_our_java(spark: SparkSession) -> None:
    assert not os.environ.keys() & CONNECTION


def test_a_header_is_the_first_of_its_name_or_nothing(spark: SparkSession) -> None:
    rows = [
        ([("other", b"0"), ("name", b"1"), ("name", b"2")],),
        ([("other", b"0")],),
        ([("name", None)],),
        ([],),
        (None,),
    ]
    frame = spark.createDataFrame(rows, "headers array<struct<key string, value binary>>")

    values = [row[0] for row in frame.select(query.header("name")).collect()]

    assert values == ["1", None, None, None, None]


@pytest.mark.parametrize(
    ("tables_max", "is_right"),
    first_and_long([(None, True), (4, False)], pytest.mark.verify(part="differential")),
)
def test_tables_that_are_read_as_far_as_they_go_do_not_trail_the_orders(
    spark: SparkSession,
    settings: JobSettings,
    reader: psycopg.Connection,
    tables_max: int | None,
    is_right: bool,
) -> None:
    """With a limit of theirs, the watermark passes orders whose users are read later."""
    limits = {"records_per_trigger_max": 4, "table_records_per_trigger_max": tables_max}
    job = RunningJob(spark, settings.model_copy(update=limits), reader)
    others = [registered(f"other {number}", "GZ") for number in range(30)]
    later = [
        confirmed(f"{user} {hour}", user, ("ipod", 1), ordered_at=at(hour=hour))
        for hour in range(1, 7)
        for user in USERS
    ]

    job.read(*others, *sample(), *later)

    assert (job.hour(HOUR) == SAMPLE) is is_right
