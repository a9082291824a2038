"""Ctrl-C ends a lesson in an orderly way, with Spark in the process."""

import asyncio
import signal

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lessons import broker
from lessons.broker import PREFIX, open_topics
from lessons.lab import Lab
from lessons.lesson import Lesson
from lessons.running import answer, find_answer


async def find_topics(servers: str) -> list[str]:
    async with open_topics(servers) as topics:
        return [name for name in await topics.admin.list_topics() if name.startswith(PREFIX)]


def interrupt(records: DataFrame) -> DataStreamWriter:
    """A query, while which is made Ctrl-C is pressed."""
    signal.raise_signal(signal.SIGINT)
    return records.groupBy("key").count().writeStream.outputMode("update")


def cut_off(records: DataFrame) -> DataStreamWriter:
    """As the second Ctrl-C in a function that does not return: all tasks of asyncio end."""
    raise KeyboardInterrupt


def test_an_interrupt_stops_the_query_and_removes_its_topics(lab: Lab) -> None:
    lesson = Lesson("tables")

    with pytest.raises(KeyboardInterrupt):
        answer(lab, "spark", lesson, [(lesson.cases[0], interrupt)], {})

    assert list(lab.session.streams.active) == []
    assert asyncio.run(find_topics(lab.servers)) == []


def test_a_lesson_that_is_cut_off_ends_and_the_next_run_removes_its_topics(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker, "REMOVE_SECONDS_MAX", 0.5)
    lesson = Lesson("tables")
    case = lesson.cases[0]

    with pytest.raises(KeyboardInterrupt):
        answer(lab, "spark", lesson, [(case, cut_off)], {})
    logged = [record.message for record in caplog.records if record.name == "asyncio"]
    left = asyncio.run(find_topics(lab.servers))
    answer(lab, "spark", lesson, [(case, find_answer(lesson, "spark", case.function))], {})

    assert logged == []
    assert left
    assert asyncio.run(find_topics(lab.servers)) == []
