"""Ctrl-C ends a lesson in an orderly way, with Spark in the process."""

import asyncio
import signal
from collections.abc import Callable, Sequence

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lessons import broker, faust_engine
from lessons.broker import Topics
from lessons.lab import Lab
from lessons.lesson import Lesson
from lessons.running import answer, find_answer, get_functions
from test_support.waits import HANGS_AFTER_SECONDS

STOP_SECONDS = 0.1
"""Of a case that is stopped."""


def interrupt(records: DataFrame) -> DataStreamWriter:
    """A query, while which is made Ctrl-C is pressed."""
    signal.raise_signal(signal.SIGINT)
    return records.groupBy("key").count().writeStream.outputMode("update")


def cut_off(records: DataFrame) -> DataStreamWriter:
    """As the second Ctrl-C in a function that does not return: all tasks of asyncio end."""
    raise KeyboardInterrupt


def refuse(records: DataFrame) -> DataStreamWriter:
    raise NotImplementedError("still to write")


def test_an_interrupt_stops_the_query_and_removes_its_topics(
    lab: Lab, find_topics: Callable[[], Sequence[str]]
) -> None:
    lesson = Lesson("tables")

    with pytest.raises(KeyboardInterrupt):
        answer(lab, "spark", lesson, [(lesson.cases[0], interrupt)], {})

    assert list(lab.session.streams.active) == []
    assert find_topics() == []


def test_a_lesson_that_is_cut_off_ends_and_the_next_run_removes_its_topics(
    lab: Lab,
    find_topics: Callable[[], Sequence[str]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(broker, "REMOVE_SECONDS_MAX", 0.5)
    lesson = Lesson("tables")
    case = lesson.cases[0]

    with pytest.raises(KeyboardInterrupt):
        answer(lab, "spark", lesson, [(case, cut_off)], {})
    logged = [record.message for record in caplog.records if record.name == "asyncio"]
    left = find_topics()
    answer(lab, "spark", lesson, [(case, find_answer(lesson, "spark", case.function))], {})

    assert logged == []
    assert left
    assert find_topics() == []


def test_an_interrupt_is_over_when_all_cases_have_stopped(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    async def run_case(_: object, prefix: str, *rest: object) -> None:
        is_last = bool(events)
        events.append("started")
        if is_last:
            signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.sleep(HANGS_AFTER_SECONDS)
        finally:
            await asyncio.sleep(STOP_SECONDS if is_last else 0)
            events.append("stopped")

    async def remove(_: Topics, prefix: str) -> None:
        if events:
            events.append("removed")

    monkeypatch.setattr(faust_engine, "run_case", run_case)
    monkeypatch.setattr(Topics, "remove", remove)
    lesson = Lesson("tables")

    with pytest.raises(KeyboardInterrupt):
        answer(lab, "faust", lesson, get_functions(lesson, "faust")[:2], {})

    assert events == ["started", "started", "stopped", "stopped", "removed"]


def test_a_case_that_fails_is_what_is_raised(lab: Lab) -> None:
    lesson = Lesson("tables")

    with pytest.raises(NotImplementedError, match="to write"):
        answer(lab, "spark", lesson, [(lesson.cases[0], refuse)], {})
