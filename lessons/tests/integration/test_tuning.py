"""A program that is not tuned is recognized by its plan, its batches and its state."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from lessons.exercises import Exercise, Verdict
from lessons.lab import Lab
from lessons.lesson import Lesson
from lessons.tuning.experiment import make_controls, try_all
from lessons.tuning.job import uses_python
from test_support.first_and_long import first_and_long

LONG = pytest.mark.verify(part="lessons")
LESSON = Lesson("tuning")
FORGETS = 'dropDuplicatesWithinWatermark(["order_id"])'
HOURS_CLAIM = "hours: all closed hours once, and no other"
OPTIONS = {
    "{}": "partitions: at most 2, as Spark runs 2 tasks at a time: found 200",
    "{'maxOffsetsPerTrigger': '0'}": (
        "tuning.py: ValueError: maxOffsetsPerTrigger is 0, not a whole number of at least 1"
    ),
    "{'spark.sql.shuffle.partitions': '2'}": "batches: at most 2: found 6",
    "None": "tuning.py: TypeError: choose_options returned nothing, not a dict",
}
QUERIES = {
    (f".{FORGETS}", '.dropDuplicates(["ordered_at"])'): HOURS_CLAIM,
    (FORGETS, 'dropDuplicates(["order_id"])'): "rows of state: at most 1,000: found 2,003",
    (f".{FORGETS}", ""): f"{HOURS_CLAIM}: found 0 of 9, and 9 more",
    ('"2 hours"', '"1 hour"'): f"{HOURS_CLAIM}: found 9 of 9, and 1 more",
    ('"window.start"', '"window.end"'): f"{HOURS_CLAIM}: found 0 of 9, and 9 more",
    ('.alias("hour")', ""): "tuning.py: TypeError: its columns are start, orders, pieces",
    ('F.col("window.start")', 'F.col("window")'): "tuning.py: TypeError: hour is a struct<start",
    ('"pieces")\n    )', '"pieces").writeStream\n    )'): (
        "tuning.py: TypeError: count_orders returned DataStreamWriter, not a DataFrame"
    ),
}


class Nothing(StatefulProcessor):
    """Keeps no state, and is never run."""

    def init(self, handle: StatefulProcessorHandle) -> None: ...

    def handleInputRows(
        self, key: Any, rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        return rows

    def close(self) -> None: ...


PLANS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "udf": lambda rows: rows.select(F.udf(abs, "long", useArrow=False)("id")),
    "arrow udf": lambda rows: rows.select(F.udf(abs, "long", useArrow=True)("id")),
    "mapInPandas": lambda rows: rows.mapInPandas(lambda some: some, "id long"),
    "mapInArrow": lambda rows: rows.mapInArrow(lambda some: some, "id long"),
    "transformWithState": lambda rows: rows.groupBy("id").transformWithState(
        Nothing(), "id long", "update", "none"
    ),
    "applyInPandas": lambda rows: rows.groupBy("id").applyInPandas(lambda some: some, "id long"),
}


@pytest.fixture
def exercise(tmp_path: Path) -> Exercise:
    exercise = Exercise(LESSON, tmp_path)
    exercise.copy()
    return exercise


def check(lab: Lab, exercise: Exercise, program: str) -> Verdict:
    """Return the verdict on the last function that was reached."""
    exercise.path.write_text(exercise.path.read_text() + program)
    return list(exercise.check(lab))[-1]


@pytest.mark.parametrize("options", OPTIONS)
def test_options_that_leave_a_job_slow_are_named(
    lab: Lab, exercise: Exercise, options: str
) -> None:
    verdict = check(lab, exercise, f"def choose_options(): return {options}\n")

    assert verdict.problem == OPTIONS[options]


@pytest.mark.parametrize(("old", "new"), first_and_long(QUERIES, LONG), ids=range(len(QUERIES)))
def test_a_query_with_too_much_work_is_named(
    lab: Lab, exercise: Exercise, old: str, new: str
) -> None:
    solution = exercise.solutions[0].read_text()
    assert solution.count(old) == 1

    verdict = check(lab, exercise, solution.replace(old, new))

    assert verdict.task.name == "count_orders"
    assert verdict.problem.startswith(QUERIES[old, new])


def test_the_slow_query_is_right_and_its_python_is_named(lab: Lab, exercise: Exercise) -> None:
    solution = exercise.solutions[0].read_text()

    verdict = check(lab, exercise, f"{solution}\ncount_orders = count_slowly\n")

    assert verdict.problem == "plan: no row goes to Python: found Python"


@pytest.mark.parametrize("kind", PLANS)
def test_rows_that_go_to_python_are_seen_in_a_plan(lab: Lab, kind: str) -> None:
    rows = lab.session.range(10)

    assert uses_python(PLANS[kind](rows))
    assert not uses_python(rows.select(F.abs("id")))


@LONG
def test_each_control_is_wrong_for_its_own_reason(lab: Lab) -> None:
    partitions, python, users = try_all(lab, make_controls(), 3)

    assert partitions.difference == "4 partitions, 1 batch, no Python"
    assert python.difference == "2 partitions, 1 batch, Python"
    assert users.measured.shape == users.trial.shape
    assert " instead of (" in users.difference
