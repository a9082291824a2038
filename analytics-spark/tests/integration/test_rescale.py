"""State that is split otherwise is the same state; a setting that does not fit it is refused."""

import threading
from collections.abc import Callable

import psycopg
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from analytics_spark.job import job, writer
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.generations import FIRST
from analytics_spark.job.writer import NotTheWriter
from analytics_spark.operations import rescale
from analytics_spark.operations.rescale import NotRescaled
from analytics_spark.settings import JobSettings
from test_support.analytics.histories import HOUR, at, cancelled, confirmed, moved, sample
from test_support.analytics.running_job import Lent, RunningJob, Sink, publish

SAMPLE = (4, 4, 12, 44_506_56)

Split = Callable[[int], None]


@pytest.fixture
def split(spark: SparkSession, settings: JobSettings, monkeypatch: pytest.MonkeyPatch) -> Split:
    """The command."""
    for room in (job, rescale):
        monkeypatch.setattr(room, "open_session", lambda settings: Lent(spark))
    return lambda partitions: rescale.run(settings, partitions, threading.Event())


def partitions_of(settings: JobSettings) -> int | None:
    checkpoint = Checkpoint(settings.checkpoint_dir)
    return checkpoint.get_partitions(checkpoint.newest_planned)


@pytest.mark.verify(part="reprocess")
def test_from_2_partitions_to_4_and_back_all_is_exact(
    settings: JobSettings, live: RunningJob, split: Split
) -> None:
    """Each time what the state held is corrected, known as a repeat, and added to."""
    live.read(*sample())

    split(4)
    live.read(
        *sample(),
        moved("Jack", "SH", since=at(30)),
        confirmed("at home again", "Jack", ("ipad", 1), ordered_at=at(31)),
        confirmed("not at home", "Jack", ("iphone", 1), ordered_at=at(31)),
    )
    assert partitions_of(settings) == 4
    assert live.hour(HOUR) == (4, 5, 13, 49_395_44)
    assert (live.epoch("counted"), live.epoch("duplicates")) == (18, 16)

    split(2)
    live.read(
        cancelled("at home again", "Jack", ("ipad", 1), ordered_at=at(31)),
        confirmed("Lily's", "Lily", ("ipad", 1), ordered_at=at(32)),
        *sample(),
    )
    assert partitions_of(settings) == 2
    assert live.hour(HOUR) == (4, 5, 13, 49_395_44)
    assert (live.epoch("counted"), live.epoch("duplicates")) == (19, 32)


def test_it_is_refused_while_the_job_runs(
    settings: JobSettings,
    live: RunningJob,
    split: Split,
    reader: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live.read(*sample())
    writer.take_lock(reader, FIRST)
    monkeypatch.setattr(rescale, "STOPPED_SECONDS_MAX", 0)

    with pytest.raises(NotRescaled, match="the job runs: stop it first"):
        split(4)

    assert partitions_of(settings) == 2


def test_before_the_first_batch_there_is_nothing_to_split(split: Split) -> None:
    with pytest.raises(NotRescaled, match="set SHUFFLE_PARTITIONS, and start the job"):
        split(4)


def test_a_setting_that_the_checkpoint_does_not_have_is_refused(
    settings: JobSettings, live: RunningJob, split: Split
) -> None:
    """Spark would go on with 2 and say nothing."""
    live.read(*sample())
    asked = settings.model_copy(update={"shuffle_partitions": 4})

    with (
        pytest.raises(NotTheWriter, match="has 2 shuffle partitions, but SHUFFLE_PARTITIONS is 4"),
        job.open_query(asked, FIRST),
    ):
        pass
    with pytest.raises(NotRescaled, match=r"SHUFFLE_PARTITIONS is 4, .* unset it first"):
        rescale.run(asked, 2, threading.Event())

    split(4)
    with job.open_query(asked, FIRST):
        pass


def test_as_many_tasks_read_orders_as_the_state_has_partitions(
    settings: JobSettings, live: RunningJob, split: Split
) -> None:
    """Fewer would leave cores of a cluster without work."""
    live.read(*sample())
    assert "Repartition 2, false" in read_plan(settings)

    split(4)

    assert "Repartition 4, false" in read_plan(settings)


def read_plan(settings: JobSettings) -> str:
    with job.open_query(settings, FIRST) as (start, _):
        frame: DataFrame = start.args[0]  # type: ignore[attr-defined]
        plan: str = frame._jdf.queryExecution().logical().toString()
    return plan


@pytest.mark.verify(part="reprocess")
def test_a_batch_that_was_left_unfinished_is_finished_first_and_counts_once(
    settings: JobSettings, live: RunningJob, split: Split
) -> None:
    """It is in the table, but not in the checkpoint. Under another number it would count again.

    It alone: a job that is behind has as much to read as the topics have, and there are to be more
    partitions for that."""
    live.read(*sample())
    with pytest.raises(StreamingQueryException, match="died after the commit"):
        live.read(confirmed("next", "Jack", ("iphone", 1), ordered_at=at(20)), wrap=dies)
    behind = confirmed("behind it", "Jack", ("iphone", 1), ordered_at=at(21))
    publish(settings.kafka_bootstrap_servers, [behind])

    split(4)

    assert live.epoch("counted") == 17
    live.read(confirmed("last", "Jack", ("iphone", 1), ordered_at=at(22)))
    assert live.hour(HOUR)[:2] == (4, 7)
    assert live.epoch("counted") == 19


def dies(plain: Sink) -> Sink:
    def write(frame: DataFrame, batch_id: int) -> None:
        plain(frame, batch_id)
        raise RuntimeError("died after the commit")

    return write


@pytest.mark.verify(part="reprocess")
def test_without_that_spark_refuses(
    live: RunningJob, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.read(*sample())
    with pytest.raises(StreamingQueryException, match="died after the commit"):
        live.read(confirmed("next", "Jack", ("iphone", 1), ordered_at=at(20)), wrap=dies)
    monkeypatch.setattr(rescale, "finish_last_batch", lambda settings, generation, stop: None)

    with pytest.raises(NotRescaled, match="Spark refuses"):
        split(4)


@pytest.mark.verify(part="reprocess")
def test_a_rescale_that_was_interrupted_has_to_be_repeated(
    settings: JobSettings, live: RunningJob, split: Split
) -> None:
    live.read(*sample())
    split(4)
    newest = Checkpoint(settings.checkpoint_dir).newest_done
    (settings.checkpoint_dir / "commits" / f"{newest}").unlink()

    with (
        pytest.raises(NotTheWriter, match="to 4 partitions was interrupted: repeat"),
        job.open_query(settings, FIRST),
    ):
        pass
    split(4)

    live.read(*sample())
    assert live.hour(HOUR) == SAMPLE
    assert live.epoch("duplicates") == 16
