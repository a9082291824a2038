"""A rebuild compared with the live tables: equal when they are right, reported when not."""

import argparse
import threading
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from analytics_spark.job import generations, job
from analytics_spark.job.generations import FIRST
from analytics_spark.job.job import get_cause
from analytics_spark.operations import reprocess
from analytics_spark.operations.generations_compared import read_content
from analytics_spark.settings import JobSettings
from test_support.analytics.histories import (
    HOUR,
    at,
    cancelled,
    confirmed,
    id_of,
    moved,
    registered,
    sample,
)
from test_support.analytics.running_job import Lent, RunningJob

CORRECTED = [
    moved("Jack", "SH", since=at(30)),
    confirmed("after the move", "Jack", ("ipad", 1), ordered_at=at(31)),
    cancelled("Lily ipad", "Lily", ("ipad", 3), ordered_at=at(6 / 60)),
]

Reprocess = Callable[..., str]


@pytest.fixture
def run(
    spark: SparkSession,
    settings: JobSettings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Reprocess:
    """The command; returns what it printed."""
    monkeypatch.setattr(job, "open_session", lambda settings: Lent(spark))

    def call(*, stop: threading.Event | None = None, **acts: bool) -> str:
        chosen = dict.fromkeys(("switch", "roll_back", "drop", "from_scratch"), False) | acts
        capsys.readouterr()
        reprocess.run(settings, argparse.Namespace(**chosen), stop or threading.Event())
        return capsys.readouterr().out

    return call


def test_v14_a_rebuild_into_fresh_tables_has_an_equal_content_hash(
    live: RunningJob, run: Reprocess, reader: psycopg.Connection
) -> None:
    live.read(*sample())
    live.read(*CORRECTED)

    printed = run()

    rebuilt = generations.find_candidate(reader)
    assert rebuilt is not None
    assert read_content(reader, FIRST) == read_content(reader, rebuilt)
    assert read_content(reader, FIRST)[0] > 0
    assert "all hours are equal" in printed
    assert generations.get_active(reader) == FIRST


@pytest.mark.verify(part="reprocess")
def test_a_switch_and_a_roll_back_lose_nothing_and_count_nothing_twice(
    spark: SparkSession,
    settings: JobSettings,
    live: RunningJob,
    run: Reprocess,
    reader: psycopg.Connection,
) -> None:
    live.read(*sample())
    run()
    live.read(confirmed("meanwhile", "Jack", ("iphone", 1), ordered_at=at(20)))

    run(switch=True)
    assert live_counts(reader) == (17, 0)
    with pytest.raises(StreamingQueryException) as ended:
        live.read(confirmed("refused", "Jack", ("iphone", 1), ordered_at=at(19)))
    assert get_cause(ended.value) == (
        "analytics_spark.job.generations.OtherGeneration: "
        "generation 1 is not the active one any more"
    )
    after = RunningJob(spark, settings, reader, generations.get_active(reader))
    after.read(confirmed("after", "Jack", ("iphone", 1), ordered_at=at(21)))
    assert live_counts(reader) == (19, 0)
    assert after.hour(HOUR)[:2] == (4, 7)

    run(roll_back=True)
    assert live_counts(reader) == (17, 0)
    live.read(confirmed("at last", "Jack", ("iphone", 1), ordered_at=at(22)))
    assert live_counts(reader) == (20, 0)
    assert live.hour(HOUR)[:2] == (4, 8)


def live_counts(reader: psycopg.Connection) -> tuple[int, int]:
    row = reader.execute("SELECT counted, duplicates FROM epochs").fetchone()
    assert row is not None
    return row[0], row[1]


def test_a_difference_is_reported_by_hour_and_repaired_by_a_switch(
    live: RunningJob, run: Reprocess, reader: psycopg.Connection
) -> None:
    live.read(*sample())
    reader.execute(
        "UPDATE generation_1.cells SET cents = cents + 1 WHERE user_id = %s", [id_of("Jack")]
    )

    printed = run(switch=True)

    assert "2016-11-11T00 not final: 16 cells instead of 16, purchases +0" in printed
    assert "amount -0.01" in printed
    assert "1 hours differ" in printed
    assert live.hour(HOUR) == (4, 4, 12, 44_506_56)


@pytest.mark.verify(part="reprocess")
def test_the_number_of_late_orders_that_the_rebuild_accepts_is_reported(
    live: RunningJob, run: Reprocess, reader: psycopg.Connection
) -> None:
    live.read(*sample())
    live.read(confirmed("much later", "Lily", ("iphone", 1), ordered_at=at(hour=5)))
    live.read(confirmed("too late", "Jack", ("iphone", 1), ordered_at=at(51)))

    printed = run()

    assert "2016-11-11T00 final: 16 cells instead of 16, purchases +1, quantity +1" in printed
    assert "live has counted 17 orders and dropped 1 as late, the rebuild 18 and 0" in printed
    assert "the rebuild accepted 1 orders that live dropped as late" in printed


@pytest.mark.verify(part="reprocess")
def test_a_stopped_rebuild_resumes_where_it_was(
    live: RunningJob, run: Reprocess, reader: psycopg.Connection
) -> None:
    live.read(*sample())
    stop = threading.Event()
    stop.set()
    with pytest.raises(reprocess.NothingDone, match="resumes where it was"):
        run(stop=stop)

    assert "generation 2 resumes where it was" in run()
    assert "all hours are equal" in run()


@pytest.mark.verify(part="reprocess")
def test_a_rebuild_can_start_again_and_a_hidden_generation_can_be_dropped(
    settings: JobSettings, live: RunningJob, run: Reprocess, reader: psycopg.Connection
) -> None:
    live.read(*sample())
    run()
    assert "generation 2 is removed\ngeneration 3 starts" in run(from_scratch=True, switch=True)
    assert (settings.checkpoint_dir / "metadata").exists()

    assert run(drop=True) == "generation 1 is removed\n"

    assert [entry.name for entry in settings.checkpoint_dir.iterdir()] == ["generation-3"]
    assert [each.number for each in generations.find_all(reader)] == [3]
    assert live.hour(HOUR) == (4, 4, 12, 44_506_56)
    with pytest.raises(reprocess.NothingDone, match="there is no previous generation"):
        run(roll_back=True)


@pytest.mark.verify(part="reprocess")
def test_a_lost_checkpoint_is_replaced_by_a_rebuild(
    spark: SparkSession,
    settings: JobSettings,
    live: RunningJob,
    run: Reprocess,
    reader: psycopg.Connection,
) -> None:
    """The live job refuses to start without its checkpoint; the rebuild needs neither."""
    live.read(*sample())
    settings.checkpoint_dir.rename(settings.checkpoint_dir.with_name("lost"))

    run(switch=True)

    after = RunningJob(spark, settings, reader, generations.get_active(reader))
    after.read(registered("Tom", "BJ"), confirmed("Tom's", "Tom", ("iphone", 1), ordered_at=at(40)))
    assert after.hour(HOUR)[:2] == (5, 5)


def test_one_reprocess_at_a_time(settings: JobSettings, run: Reprocess) -> None:
    with (
        reprocess.connect(settings),
        pytest.raises(reprocess.NothingDone, match="another reprocess is running"),
    ):
        run()


@pytest.mark.verify(part="reprocess")
def test_a_rebuild_without_progress_is_given_up(
    live: RunningJob, run: Reprocess, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.read(*sample())
    monkeypatch.setattr(reprocess, "SILENCE_SECONDS_MAX", -timedelta(1).total_seconds())
    with pytest.raises(reprocess.NothingDone, match="retry"):
        run()
