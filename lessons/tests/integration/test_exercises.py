"""An exercise is red as it is, green with the functions of the lesson, and checked when saved."""

import os
import time
from pathlib import Path
from threading import Thread

import pytest

from lessons.exercises import Exercise
from lessons.lab import Lab
from lessons.learning import learn
from lessons.lesson import Lesson, find_lessons
from test_support.first_and_long import first_and_long
from test_support.waits import HANGS_AFTER_SECONDS

LONG = pytest.mark.verify(part="lessons")
POLL_SECONDS = 0.05
SOLVED = "all exercises are solved"


def read_solution(exercise: Exercise) -> str:
    return exercise.solutions[0].read_text()


@pytest.fixture
def exercise(request: pytest.FixtureRequest, tmp_path: Path) -> Exercise:
    exercise = Exercise(Lesson(request.param), tmp_path)
    assert exercise.copy()
    return exercise


@pytest.mark.parametrize("exercise", first_and_long(find_lessons(), LONG), indirect=True)
def test_an_exercise_is_red_and_its_solution_green(lab: Lab, exercise: Exercise) -> None:
    before = list(exercise.check(lab))
    with exercise.path.open("a") as program:
        program.write(read_solution(exercise))
    after = list(exercise.check(lab))

    assert [verdict.is_unwritten for verdict in before] == [True]
    assert [verdict.task for verdict in after] == exercise.tasks
    assert [verdict.problem for verdict in after] == [""] * len(after)
    assert all(verdict.is_right for verdict in after)


@pytest.mark.parametrize("exercise", find_lessons(), indirect=True)
def test_each_function_has_a_case_and_a_hint(exercise: Exercise) -> None:
    assert all(exercise.get_hint(task) for task in exercise.tasks)
    assert "raise NotImplementedError" in exercise.path.read_text()


WORKER = """\
from pyspark.sql import functions as F
def count_words(records):
    return records.select(raise_text("value").alias("word")).writeStream
@F.udf
def raise_text(text):
    return text.uper()
"""
PROGRAMS = {
    "def count_words(records):\n    return records\n": (
        "tables.py: TypeError: count_words returned DataFrame, not a query"
    ),
    "def count_words(records):\n    records.groupBy('value')\n": (
        "tables.py: TypeError: count_words returned nothing, not a query"
    ),
    "import sys\nsys.exit(1)\n": "tables.py:2: RuntimeError: it ends Python",
    "def count_words(records):\n    exit(1)\n": "tables.py:2: RuntimeError: it ends Python",
    WORKER: "tables.py:6: AttributeError: 'str' object has no attribute 'uper'",
    "def count_words(records:\n": "tables.py:1: '(' was never closed",
    "import nowhere\n": "tables.py:1: ModuleNotFoundError: No module named 'nowhere'",
    "count_words = None\n": "tables.py: LookupError: there is no function count_words",
    "def count_words(records):\n    return records.groupBy('word').count().writeStream\n": (
        "tables.py:2: AnalysisException: [UNRESOLVED_COLUMN"
    ),
    "def count_words(records):\n    return records.select('value').writeStream\n": (
        "its columns are value; expected are word, count"
    ),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
@pytest.mark.parametrize("exercise", ["tables"], indirect=True)
def test_what_is_wrong_is_one_line(
    lab: Lab, exercise: Exercise, program: str, capfd: pytest.CaptureFixture[str]
) -> None:
    exercise.path.write_text(program)

    (verdict,) = exercise.check(lab)

    assert not verdict.is_right
    assert verdict.problem.startswith(PROGRAMS[program])
    assert "\n" not in verdict.problem
    assert capfd.readouterr() == ("", "")


def test_each_save_is_checked_and_a_solved_exercise_leads_to_the_next(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables, windows = (Exercise(Lesson(name), tmp_path) for name in ("tables", "windows"))
    windows.copy()
    append(windows.path, read_solution(windows))
    printed = PrintedText(capsys)
    thread = Thread(target=learn, args=(lab, [tables, windows]), daemon=True)
    thread.start()

    assert "tables: count_words is still to write" in printed.read_to("is checked when you save it")
    append(tables.path, read_solution(tables).replace("F.lower", ""))
    wrong = printed.read_to("hint: ")
    append(tables.path, read_solution(tables))
    right = printed.read_to(SOLVED)
    thread.join()

    assert "≠ Hello 2" in wrong
    assert "tables: words, rows differ" in wrong
    assert "tables is solved" in right
    assert "windows is solved" in right


def append(path: Path, text: str) -> None:
    """As an editor saves: a new file is put in the place of the old one."""
    saved = path.with_suffix(".new")
    saved.write_text(path.read_text() + text)
    os.replace(saved, path)


class PrintedText:
    """What another thread prints, read as it comes."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def read_to(self, expected: str) -> str:
        """What was printed since the last call, when it has the expected text."""
        text = ""
        deadline = time.monotonic() + HANGS_AFTER_SECONDS
        while expected not in text:
            assert time.monotonic() < deadline, text
            time.sleep(POLL_SECONDS)
            text += self._capsys.readouterr().out
        return text
