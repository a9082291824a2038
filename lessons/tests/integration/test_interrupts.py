"""Ctrl-C ends a lesson in an orderly way, with Spark in the process."""

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lessons import broker, faust_engine, spark_engine
from lessons.broker import Topics
from lessons.lab import Lab
from lessons.lesson import Engine, Lesson
from lessons.running import answer, answer_in_each, find_answer, get_functions
from test_support.waits import HANGS_AFTER_SECONDS

STOP_SECONDS = 0.1
"""Of a case that is stopped."""
ENGINES: tuple[Engine, ...] = ("spark", "faust")
CASES = 2
"""Of each engine."""


@pytest.fixture(autouse=True)
def handler_of_a_new_program() -> Iterator[None]:
    """That of Python: an earlier test of this process can have left the one of PySpark, which
    raises KeyboardInterrupt wherever it finds the program."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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


def test_an_interrupt_while_a_query_starts_stops_it(lab: Lab) -> None:
    lesson = Lesson("tables")

    def interrupt_start(records: DataFrame) -> DataStreamWriter:
        writer = records.groupBy("key").count().writeStream.outputMode("update")
        start = writer.start

        def start_late() -> StreamingQuery:
            signal.raise_signal(signal.SIGINT)
            time.sleep(STOP_SECONDS)
            return start()

        # Its methods return the writer itself.
        monkeypatch.setattr(writer, "start", start_late)
        return writer

    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(KeyboardInterrupt):
        answer(lab, "spark", lesson, [(lesson.cases[0], interrupt_start)], {})

    assert list(lab.session.streams.active) == []


def test_an_interrupt_is_over_when_all_cases_of_all_engines_have_stopped(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: defaultdict[str, list[str]] = defaultdict(list)

    def find_engine(prefix: str) -> str:
        return next(engine for engine in ENGINES if f".{engine}." in prefix)

    async def run_case(*arguments: object) -> None:
        prefix = next(each for each in arguments if isinstance(each, str))
        of_engine = events[find_engine(prefix)]
        of_engine.append("started")
        is_last = sum(map(len, events.values())) == len(ENGINES) * CASES
        if is_last:
            signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.sleep(HANGS_AFTER_SECONDS)
        finally:
            await asyncio.sleep(STOP_SECONDS if is_last else 0)
            of_engine.append("stopped")

    async def remove(_: Topics, prefix: str) -> None:
        if before := events.get(find_engine(prefix)):
            before.append("removed")

    for engine in (faust_engine, spark_engine):
        monkeypatch.setattr(engine, "run_case", run_case)
    monkeypatch.setattr(Topics, "remove", remove)
    lesson = Lesson("tables")
    functions = {engine: get_functions(lesson, engine)[:CASES] for engine in ENGINES}

    with pytest.raises(KeyboardInterrupt):
        answer_in_each(lab, lesson, functions, {})

    expected = ["started", "started", "stopped", "stopped", "removed"]
    assert events == {engine: expected for engine in ENGINES}


def test_a_case_that_fails_is_what_is_raised(lab: Lab) -> None:
    lesson = Lesson("tables")

    with pytest.raises(NotImplementedError, match="to write"):
        answer(lab, "spark", lesson, [(lesson.cases[0], refuse)], {})
