"""What the observer reads of the job: its position, and that it runs also without records."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from analytics_spark.job import generations, job, sink
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.generations import FIRST, OtherGeneration
from analytics_spark.job.writer import open_writer
from test_support.analytics.one_batch import BUCKETS, JACK, one_batch

READY: Any = SimpleNamespace(is_working=True)
STUCK: Any = SimpleNamespace(is_working=False)

BEAT = "SELECT beat_at FROM beats"
POSITIONS = "SELECT consumer, topic, partition, position FROM consumer_positions"
PROGRESS = """
    SELECT consumer, beat_at IS NOT NULL, committed_at IS NOT NULL, event_at = watermark
    FROM consumer_progress
"""


def test_a_job_that_was_never_there_has_no_progress(reader: psycopg.Connection) -> None:
    assert reader.execute(PROGRESS).fetchall() == []
    assert reader.execute(POSITIONS).fetchall() == []


def test_an_idle_job_gives_signs_of_life(reader: psycopg.Connection, tables: str) -> None:
    job.beat(tables, FIRST, READY)
    first = reader.execute(BEAT).fetchone()
    job.beat(tables, FIRST, READY)
    second = reader.execute(BEAT).fetchone()

    assert first is not None
    assert second is not None
    assert second[0] > first[0]
    assert reader.execute(PROGRESS).fetchall() == [("analytics-job", True, False, None)]


def test_a_query_that_is_stuck_gives_none(reader: psycopg.Connection, tables: str) -> None:
    job.beat(tables, FIRST, STUCK)

    assert reader.execute(BEAT).fetchall() == []


def test_a_job_of_another_generation_gives_none(reader: psycopg.Connection, tables: str) -> None:
    generations.show(reader, generations.begin(reader))

    with pytest.raises(OtherGeneration):
        job.beat(tables, FIRST, READY)

    assert reader.execute(BEAT).fetchall() == []


def test_the_position_is_that_of_the_last_batch_of_the_active_generation(
    reader: psycopg.Connection, tables: str, tmp_path: Path
) -> None:
    job.beat(tables, FIRST, READY)
    with open_writer(tables, Checkpoint(tmp_path), BUCKETS) as writer:
        for number in (1, 2):
            sink.apply(writer, one_batch(number, JACK), "0" * 32)

    assert reader.execute(POSITIONS).fetchall() == [("analytics-job", "orders.v1", 0, 2)]
    assert reader.execute(PROGRESS).fetchall() == [("analytics-job", True, True, True)]

    generations.show(reader, generations.begin(reader))

    assert reader.execute(POSITIONS).fetchall() == []
    assert reader.execute(PROGRESS).fetchall() == [("analytics-job", True, False, None)]
