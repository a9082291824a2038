"""Exercises: each lesson has a program in Spark with holes, which cases of the lesson check.

It is solved in a copy, so that the lesson keeps its holes.
"""

import re
import shutil
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

from lessons.lab import Lab
from lessons.lesson import FOLDER, Case, Engine, Lesson, Rows, find_columns
from lessons.programs import execute, surviving
from lessons.running import Answer, Outcome, answer

ENGINE: Engine = "spark"
FILE = "exercise.py"
COPIES = FOLDER.parent / "learn"
"""Where they are, unless another folder is given."""


EXPECTED = 'a query that has not been started, such as rows.writeStream.outputMode("…")'
TRACEBACK = "Traceback (most recent call last):\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a case: an outcome, or the problem that prevented one.

    A hint helps with what the program answers, not with a program that is none.
    """

    case: Case
    outcome: Outcome | None = None
    problem: str | None = None
    is_unwritten: bool = False
    needs_hint: bool = True

    @property
    def is_right(self) -> bool:
        return self.outcome is not None and not self.problem and not self.outcome.differences


class Exercise:
    """The exercise of a lesson, in a copy of one's own."""

    def __init__(self, lesson: Lesson, folder: Path = COPIES) -> None:
        self.lesson = lesson
        self.path = folder / f"{lesson.name}.py"
        self._original = FOLDER / lesson.name / FILE
        self._declared = execute(self._original)

    @property
    def cases(self) -> Sequence[Case]:
        """Those that check it, in the order in which its holes are filled."""
        by_name = {case.name: case for case in self.lesson.cases}
        return [by_name[name] for name in self._declared["CASES"]]

    @property
    def functions(self) -> list[str]:
        """Those to write."""
        return list(dict.fromkeys(case.function for case in self.cases))

    def get_hint(self, case: Case) -> str:
        hint: str = self._declared["HINTS"][case.function]
        return hint

    def copy(self) -> bool:
        """Whether there was no copy yet."""
        if self.path.exists():
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._original, self.path)
        return True

    def check(self, lab: Lab) -> Iterator[Verdict]:
        """Run the copy, case by case, up to the first that is not as expected."""
        # The program of a learner may raise anything.
        try:
            names = execute(self.path)
        except Exception as error:
            problem = describe(error, self.path)
            yield Verdict(case=self.cases[0], problem=problem, needs_hint=False)
            return
        for case in self.cases:
            verdict = self._check_case(lab, case, names)
            yield verdict
            if not verdict.is_right:
                return

    def _check_case(self, lab: Lab, case: Case, names: Mapping[str, Any]) -> Verdict:
        try:
            function = find_function(names, case.function)
        except LookupError as error:
            return Verdict(case=case, problem=describe(error, self.path), needs_hint=False)
        try:
            (outcome,) = answer(lab, ENGINE, self.lesson, [(case, function)], {})
        except Exception as error:
            problem = describe(error, self.path)
            is_unwritten = isinstance(error, NotImplementedError)
            return Verdict(case=case, problem=problem, is_unwritten=is_unwritten)
        return Verdict(case=case, outcome=outcome, problem=compare_columns(case, outcome.answers))


def find_function(names: Mapping[str, Any], function: str) -> Answer:
    """A function that returns a query, or else raises TypeError. Raises LookupError."""
    found = names.get(function)
    if not callable(found):
        raise LookupError(f"there is no function {function}")

    @wraps(found)
    def call(*arguments: Any, **options: Any) -> DataStreamWriter:
        with surviving():
            writer = found(*arguments, **options)
        if not isinstance(writer, DataStreamWriter):
            kind = "nothing" if writer is None else type(writer).__name__
            raise TypeError(f"{function} returned {kind}, not {EXPECTED}")
        return writer

    return call


def describe(error: Exception, path: Path) -> str:
    """One line: where in the program, and what."""
    if isinstance(error, SyntaxError):
        return f"{path.name}:{error.lineno}: {error.msg}"
    text = str(error).strip()
    lines = [
        frame.lineno
        for raised in (error, error.__cause__)
        for frame in traceback.extract_tb(raised.__traceback__ if raised else None)
        if frame.filename == str(path)
    ]
    # Of a Python worker of Spark there is the text only; the innermost traceback comes last.
    _, is_of_worker, below = text.rpartition(TRACEBACK)
    if is_of_worker:
        lines += map(int, re.findall(rf'File "{re.escape(str(path))}", line (\d+)', below))
        what = next((line for line in below.splitlines() if line and line[0] != " "), "")
    else:
        what = f"{type(error).__name__}: {text.partition(chr(10))[0].rstrip(';')}"
    place = f"{path.name}:{lines[-1]}" if lines else path.name
    return f"{place}: {what}"


def compare_columns(case: Case, answers: Sequence[Rows]) -> str | None:
    """What differs before any value does."""
    expected = find_columns([row for step in case.steps for row in step.get_expected(ENGINE)])
    answered = find_columns([row for rows in answers for row in rows])
    if not answered or set(answered) == set(expected):
        return None
    return f"its columns are {', '.join(answered)}; expected are {', '.join(expected)}"
