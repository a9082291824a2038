"""Run lessons, and compare what each engine answers with what must come out."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from lessons import faust_engine, spark_engine, streams_engine
from lessons.broker import Topics
from lessons.concurrency import run_at_a_time, run_with_topics
from lessons.experiment import Experiment, Findings, has_experiment
from lessons.lab import Lab
from lessons.lesson import (
    ENGINES,
    Case,
    Column,
    Engine,
    Lesson,
    Rows,
    count_right,
    find_differences,
)
from lessons.streams_engine import Twin, compile_twins

Answer = Callable[..., Any]
Functions = Sequence[tuple[Case, Answer | Twin]]
"""Cases, each with the function that answers it."""
RunCase = Callable[[Topics, str, Case, Any, Mapping[str, int]], Awaitable[Sequence[Rows]]]

CASES_MAX = 4
"""At a time in an engine: most of a small batch of Spark is planning and files, for which one query
leaves cores idle; more than four hinder each other on two cores."""

FROM_RUNNER = {"records", "table", "app", "out"}
"""What the runner passes to a function; its other parameters are those of the lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a function of an engine answered to a case: the rows of each step."""

    case: Case
    engine: Engine
    function: str
    answers: Sequence[Rows]

    @property
    def differences(self) -> Sequence[str]:
        return find_differences(self.case, self.engine, self.answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an engine answered to all cases of a lesson, and what to its controls."""

    cases: Sequence[Outcome]
    controls: Sequence[Outcome] = ()

    @property
    def problems(self) -> list[str]:
        """Rows of cases that are not as expected, and controls whose rows are."""
        differences = [
            f"{outcome.case.name}, {difference}"
            for outcome in self.cases
            for difference in outcome.differences
        ]
        equal = [outcome.function for outcome in self.controls if not outcome.differences]
        return differences + [f"{each} must be wrong, and is as expected" for each in equal]

    def __str__(self) -> str:
        cases, controls = (
            [not outcome.differences for outcome in outcomes]
            for outcomes in (self.cases, self.controls)
        )
        return count_right("cases", cases, controls)


def get_functions(lesson: Lesson, engine: Engine) -> Functions:
    return find_answers(lesson, engine, [(case, case.function) for case in lesson.cases])


def get_controls(lesson: Lesson, engine: Engine) -> Functions:
    controls = [(case, each.function) for case in lesson.cases for each in case.controls]
    return find_answers(lesson, engine, controls)


def find_answers(lesson: Lesson, engine: Engine, named: Iterable[tuple[Case, str]]) -> Functions:
    """Find the functions of cases by their names. Kafka Streams need not have all of them."""
    if engine == "streams":
        twins = streams_engine.find_twins(lesson)
        return [(case, twins[name]) for case, name in named if name in twins]
    return [(case, find_answer(lesson, engine, name)) for case, name in named]


def find_answer(lesson: Lesson, engine: Engine, function: str) -> Answer:
    found: Answer = getattr(import_module(f"lessons.{lesson.name}.{engine}"), function)
    return found


def answer(
    lab: Lab, engine: Engine, lesson: Lesson, functions: Functions, options: Mapping[str, int]
) -> Sequence[Outcome]:
    """Publish cases of a lesson, and collect what an engine answers.

    Args:
        options: Values of the lesson's parameters.

    Raises:
        TimeoutError: a function in Faust or in Kafka Streams does not read to the end.
        Failure: what an engine needs is missing, or a process of Kafka Streams has ended.
        StreamingQueryException: a query of Spark failed.
    """
    return answer_in_each(lab, lesson, {engine: functions}, options)[engine]


def answer_in_each(
    lab: Lab, lesson: Lesson, functions: Mapping[Engine, Functions], options: Mapping[str, int]
) -> Mapping[Engine, Sequence[Outcome]]:
    """Collect what engines answer at the same time: Faust mostly waits, and Spark uses the cores.

    Raises the errors of `answer`: the first one, when all cases of all engines have ended.
    """
    runners = {engine: make_runner(lab, engine, lesson) for engine in functions}

    async def run_one(
        engine: Engine, case: Case, function: Answer | Twin, topics: Topics, prefix: str
    ) -> Outcome:
        answers = await runners[engine](topics, prefix, case, function, options)
        return Outcome(case=case, engine=engine, function=function.__name__, answers=answers)

    async def run(engine: Engine) -> Sequence[Outcome]:
        runs = (partial(run_one, engine, *each) for each in functions[engine])
        return await run_with_topics(lab.servers, f"{lesson.name}.{engine}", CASES_MAX, runs)

    async def run_each() -> Mapping[Engine, Sequence[Outcome]]:
        outcomes = await run_at_a_time(len(functions), (partial(run, each) for each in functions))
        return dict(zip(functions, outcomes, strict=True))

    return asyncio.run(run_each())


def make_runner(lab: Lab, engine: Engine, lesson: Lesson) -> RunCase:
    """Start, or compile, what an engine needs. Raises Failure."""
    match engine:
        case "spark":
            return partial(spark_engine.run_case, lab.session)
        case "faust":
            return faust_engine.run_case
        case "streams":
            return partial(streams_engine.run_case, compile_twins(lesson, lab.folder))


def run_with_controls(
    lab: Lab, lesson: Lesson, columns: Sequence[Column]
) -> Mapping[Column, Result | Findings]:
    """Run all cases of a lesson in engines, and its experiment. Raises the errors of `answer`."""
    results: dict[Column, Result | Findings] = {}
    cases = {each: get_functions(lesson, each) for each in ENGINES if each in columns}
    controls = {engine: get_controls(lesson, engine) for engine in cases}
    both = {engine: [*cases[engine], *controls[engine]] for engine in cases}
    for engine, outcomes in answer_in_each(lab, lesson, both, {}).items():
        number = len(cases[engine])
        results[engine] = Result(cases=outcomes[:number], controls=outcomes[number:])
    if "experiment" in columns:
        results["experiment"] = Experiment(lesson).run_with_controls(lab)
    return results


def get_columns(lesson: Lesson) -> Sequence[Column]:
    """Where the lesson has results."""
    engines = [engine for engine in ENGINES if get_functions(lesson, engine)]
    return [*engines, "experiment"] if has_experiment(lesson) else engines


def get_parameters(lesson: Lesson, column: Column) -> set[str]:
    """What can be given to every function of a lesson in an engine, or to its experiment."""
    if column == "experiment":
        return Experiment(lesson).parameters
    if column == "streams":
        return set()
    functions = (find_answer(lesson, column, case.function) for case in lesson.cases)
    taken = [set(inspect.signature(function).parameters) for function in functions]
    return set.intersection(*taken) - FROM_RUNNER
