"""Run lessons, and compare what each engine answers with what must come out."""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lessons import faust_engine, spark_engine
from lessons.broker import open_topics
from lessons.experiment import Lab
from lessons.lesson import Case, Engine, Lesson, Rows, find_differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an engine answered to a case: the rows of each step."""

    case: Case
    engine: Engine
    answers: Sequence[Rows]

    @property
    def differences(self) -> Sequence[str]:
        return find_differences(self.case, self.engine, self.answers)


Functions = Sequence[tuple[Case, str]]
"""Cases, each with the function that answers it."""


def answer_with_spark(
    session: SparkSession,
    servers: str,
    lesson: str,
    functions: Functions,
    options: Mapping[str, Any],
) -> list[Outcome]:
    async def run() -> list[Outcome]:
        async with open_topics(servers) as topics:
            answers = await spark_engine.run_cases(session, topics, lesson, functions, options)
        return to_outcomes("spark", functions, answers)

    return asyncio.run(run())


def answer_with_faust(
    servers: str, lesson: str, functions: Functions, options: Mapping[str, Any]
) -> list[Outcome]:
    async def run() -> list[Outcome]:
        async with open_topics(servers) as topics:
            answers = await faust_engine.run_cases(topics, lesson, functions, options)
        return to_outcomes("faust", functions, answers)

    return asyncio.run(run())


def to_outcomes(
    engine: Engine, functions: Functions, answers: Sequence[Sequence[Rows]]
) -> list[Outcome]:
    return [
        Outcome(case=case, engine=engine, answers=each)
        for (case, _), each in zip(functions, answers, strict=True)
    ]


def answer(
    lab: Lab, engine: Engine, lesson: str, functions: Functions, options: Mapping[str, Any]
) -> list[Outcome]:
    """What an engine answers to cases of a lesson."""
    if engine == "faust":
        return answer_with_faust(lab.servers, lesson, functions, options)
    return answer_with_spark(lab.session, lab.servers, lesson, functions, options)


def get_functions(lesson: Lesson) -> Functions:
    return [(case, case.function) for case in lesson.cases]


def get_controls(lesson: Lesson) -> Functions:
    return [(case, control.function) for case in lesson.cases for control in case.controls]


def get_parameters(lesson: Lesson) -> set[str]:
    """What can be given to every function of a lesson, in both engines."""
    functions = [case.function for case in lesson.cases]
    answers: list[Callable[..., object]] = [
        find_answer(lesson.name, function)
        for find_answer in (spark_engine.find_answer, faust_engine.find_answer)
        for function in functions
    ]
    given = {"records", "table", "app", "out"}
    return set.intersection(*(set(inspect.signature(each).parameters) for each in answers)) - given
