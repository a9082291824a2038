"""Exercises: each lesson has a program with holes, which its cases or its experiment check.

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

from lessons import streams_engine
from lessons.experiment import Experiment, Findings
from lessons.lab import Lab
from lessons.lesson import FOLDER, Case, Engine, Lesson, find_columns
from lessons.programs import execute, surviving
from lessons.running import Answer, Outcome, answer, find_answer

ENGINE: Engine = "spark"
FILE = "exercise.py"
OF_ENGINES = ("spark.py", "faust.py", streams_engine.FILE)
SOLUTION = "solution.py"
"""Of an exercise that an experiment checks."""
COPIES = FOLDER.parent / "learn"
"""Where they are, unless another folder is given."""


EXPECTED = 'a query that has not been started, such as rows.writeStream.outputMode("…")'
TRACEBACK = "Traceback (most recent call last):\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A function to write, and what checks it: a case, or else the experiment of the lesson."""

    name: str
    function: str
    case: Case | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a task: what the program did, or the problem that prevented it.

    A hint helps with what the program does, not with a program that is none.
    """

    task: Task
    found: Outcome | Findings | None = None
    problem: str = ""
    is_unwritten: bool = False
    needs_hint: bool = True

    @property
    def is_right(self) -> bool:
        return not self.problem


class Exercise:
    """The exercise of a lesson, in a copy of one's own."""

    def __init__(self, lesson: Lesson, folder: Path = COPIES) -> None:
        self.lesson = lesson
        self.path = folder / f"{lesson.name}.py"
        self._original = FOLDER / lesson.name / FILE
        self._declared = execute(self._original)

    @property
    def tasks(self) -> Sequence[Task]:
        """In the order in which its holes are filled."""
        if not self.lesson.cases:
            return [Task(name=name, function=name) for name in self._hints]
        by_name = {case.name: case for case in self.lesson.cases}
        cases = [by_name[name] for name in self._declared["CASES"]]
        return [Task(name=case.name, function=case.function, case=case) for case in cases]

    @property
    def functions(self) -> list[str]:
        """Those to write."""
        return list(dict.fromkeys(task.function for task in self.tasks))

    @property
    def solutions(self) -> Sequence[Path]:
        """Files of the lesson that do the same; the first one has the functions."""
        files = OF_ENGINES if self.lesson.cases else [SOLUTION]
        return [FOLDER / self.lesson.name / file for file in files]

    @property
    def _hints(self) -> Mapping[str, str]:
        hints: Mapping[str, str] = self._declared["HINTS"]
        return hints

    def get_hint(self, task: Task) -> str:
        return self._hints[task.function]

    def copy(self) -> bool:
        """Whether there was no copy yet."""
        if self.path.exists():
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._original, self.path)
        return True

    def check(self, lab: Lab) -> Iterator[Verdict]:
        """Run the copy, task by task, up to the first that is not as expected."""
        # The program of a learner may raise anything.
        try:
            names = execute(self.path)
        except Exception as error:
            problem = describe(error, self.path)
            yield Verdict(task=self.tasks[0], problem=problem, needs_hint=False)
            return
        for task in self.tasks:
            verdict = self._check_task(lab, task, names)
            yield verdict
            if not verdict.is_right:
                return

    def _check_task(self, lab: Lab, task: Task, names: Mapping[str, Any]) -> Verdict:
        try:
            function = find_function(names, task.function)
        except LookupError as error:
            return Verdict(task=task, problem=describe(error, self.path), needs_hint=False)
        try:
            if task.case is None:
                findings = Experiment(self.lesson).check(lab, self.path, task.function)
                return Verdict(task=task, found=findings, problem="".join(findings.problems[:1]))
            functions = [(task.case, making_query(function))]
            (outcome,) = answer(lab, ENGINE, self.lesson, functions, {})
        except Exception as error:
            problem = describe(error, self.path)
            is_unwritten = isinstance(error, NotImplementedError)
            return Verdict(task=task, problem=problem, is_unwritten=is_unwritten)
        if problem := compare_columns(outcome):
            return Verdict(task=task, problem=problem)
        return Verdict(
            task=task, found=outcome, problem="rows differ" if outcome.differences else ""
        )

    def warm_up(self, lab: Lab) -> None:
        """Run the lesson's own program: every later check finds started what it needs, and compiled
        by Java."""
        if not self.lesson.cases:
            for task in self.tasks:
                Experiment(self.lesson).check(lab, self.solutions[0], task.function)
            return
        cases = [task.case for task in self.tasks if task.case]
        functions = [(each, find_answer(self.lesson, ENGINE, each.function)) for each in cases]
        answer(lab, ENGINE, self.lesson, functions, {})


def find_function(names: Mapping[str, Any], function: str) -> Answer:
    """Raises LookupError."""
    found: Answer | None = names.get(function)
    if not callable(found):
        raise LookupError(f"there is no function {function}")
    return found


def making_query(function: Answer) -> Answer:
    """The same function, which raises TypeError if it does not return a query."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> DataStreamWriter:
        with surviving():
            writer = function(*arguments, **options)
        if not isinstance(writer, DataStreamWriter):
            kind = "nothing" if writer is None else type(writer).__name__
            raise TypeError(f"{function.__name__} returned {kind}, not {EXPECTED}")
        return writer

    return call


def describe(error: Exception, path: Path) -> str:
    """One line: where in the program, and what."""
    if isinstance(error, SyntaxError):
        return f"{path.name}:{error.lineno}: {error.msg}"
    # The lines of an exception group have a margin.
    text = re.sub(r"(?m)^ *\| ", "", str(error)).strip()
    lines = [
        frame.lineno
        for raised in (error, error.__cause__)
        for frame in traceback.extract_tb(raised.__traceback__ if raised else None)
        if frame.filename == str(path)
    ]
    # Of another process there is the text only; the innermost traceback comes last.
    _, is_of_process, below = text.rpartition(TRACEBACK)
    if is_of_process:
        lines += map(int, re.findall(rf'File "{re.escape(str(path))}", line (\d+)', text))
        what = next((line for line in below.splitlines() if line and line[0] != " "), "")
    else:
        what = f"{type(error).__name__}: {text.partition(chr(10))[0].rstrip(';')}"
    place = f"{path.name}:{lines[-1]}" if lines else path.name
    return f"{place}: {what}"


def compare_columns(outcome: Outcome) -> str:
    """What differs before any value does; empty if nothing does."""
    steps = outcome.case.steps
    expected = find_columns([row for step in steps for row in step.get_expected(ENGINE)])
    answered = find_columns([row for rows in outcome.answers for row in rows])
    if not answered or set(answered) == set(expected):
        return ""
    return f"its columns are {', '.join(answered)}; expected are {', '.join(expected)}"
