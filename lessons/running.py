"""Run lessons, and compare what each engine answers with what must come out."""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from lessons import faust_engine, spark_engine
from lessons.broker import PREFIX, open_topics
from lessons.lab import Lab
from lessons.lesson import ENGINES, Case, Engine, Lesson, Rows, find_differences

Functions = Sequence[tuple[Case, str]]
"""Cases, each with the function that answers it."""

CASES_MAX = 4
"""At a time: most of a small batch of Spark is planning and files, for which one query leaves cores
idle; more than four hinder each other on two cores."""

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


def find_answer(lesson: str, engine: Engine, function: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(f"lessons.{lesson}.{engine}"), function)
    return found


def answer(
    lab: Lab, engine: Engine, lesson: str, functions: Functions, options: Mapping[str, int]
) -> list[Outcome]:
    """Publish cases of a lesson, and collect what an engine answers.

    Args:
        options: Values of the lesson's parameters.

    Raises:
        TimeoutError: a function in Faust does not read to the end.
        StreamingQueryException: a query of Spark failed.
    """
    run_case = (
        faust_engine.run_case if engine == "faust" else partial(spark_engine.run_case, lab.session)
    )

    async def run() -> list[Outcome]:
        free = asyncio.Semaphore(CASES_MAX)
        async with (
            open_topics(lab.servers) as topics,
            topics.remove_around(f"{PREFIX}{lesson}.{engine}.") as prefix,
        ):

            async def run_one(number: int, case: Case, function: str) -> Outcome:
                found = find_answer(lesson, engine, function)
                async with free:
                    answers = await run_case(topics, f"{prefix}{number}.", case, found, options)
                return Outcome(case=case, engine=engine, answers=answers)

            return await asyncio.gather(
                *(run_one(number, *each) for number, each in enumerate(functions))
            )

    return asyncio.run(run())


def get_parameters(lesson: Lesson) -> set[str]:
    """What can be given to every function of a lesson, in both engines."""
    taken = [
        set(inspect.signature(find_answer(lesson.name, engine, case.function)).parameters)
        for engine in ENGINES
        for case in lesson.cases
    ]
    return set.intersection(*taken) - FROM_RUNNER
