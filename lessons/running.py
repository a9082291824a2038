"""Run lessons, and compare what each engine answers with what must come out."""

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lessons import faust_engine, spark_engine
from lessons.broker import open_topics
from lessons.lab import Lab
from lessons.lesson import Case, Engine, Lesson, Rows, find_differences

Functions = Sequence[tuple[Case, str]]
"""Cases, each with the function that answers it."""

FROM_RUNNER = {"records", "table", "app", "out"}
"""What the runner passes to a function; its other parameters are those of the lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an engine answered to a case: the rows of each step."""

    case: Case
    engine: Engine
    answers: Sequence[Rows]

    @property
    def differences(self) -> Sequence[str]:
        return find_differences(self.case, self.engine, self.answers)


def get_functions(lesson: Lesson) -> Functions:
    return [(case, case.function) for case in lesson.cases]


def get_controls(lesson: Lesson) -> Functions:
    return [(case, control.function) for case in lesson.cases for control in case.controls]


def answer(
    lab: Lab, engine: Engine, lesson: str, functions: Functions, options: Mapping[str, int]
) -> list[Outcome]:
    """Publish cases of a lesson, and collect what an engine answers.

    Args:
        options: Values of the lesson's parameters.
    """

    async def run() -> list[list[Rows]]:
        async with open_topics(lab.servers) as topics:
            if engine == "faust":
                return await faust_engine.run_cases(topics, lesson, functions, options)
            return await spark_engine.run_cases(lab.session, topics, lesson, functions, options)

    return [
        Outcome(case=case, engine=engine, answers=answers)
        for (case, _), answers in zip(functions, asyncio.run(run()), strict=True)
    ]


def get_parameters(lesson: Lesson) -> set[str]:
    """What can be given to every function of a lesson, in both engines."""
    taken = [
        set(inspect.signature(find_answer(lesson.name, case.function)).parameters)
        for find_answer in (spark_engine.find_answer, faust_engine.find_answer)
        for case in lesson.cases
    ]
    return set.intersection(*taken) - FROM_RUNNER
