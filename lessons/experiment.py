"""A lesson that is an experiment: what was found, next to what was claimed.

Such a lesson is a folder with a README.md and a module `experiment`, which has two functions of a
Lab and the parameters of the lesson: `run` returns findings that must hold, and `run_controls`
findings that must not, as the mechanism behind the claim is left out.
"""

import inspect
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType

from pyspark.sql import SparkSession

from lessons import spark_engine
from lessons.broker import quietly
from lessons.lesson import FOLDER, Row, read_title
from local_stack.testing import throwaway_postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row of the table that an experiment prints: what was found, what is claimed of it, and
    whether that holds."""

    row: Row
    claim: str
    holds: bool


class Lab:
    """The servers of experiments; each is started when it is first asked for."""

    def __init__(self, servers: str, stack: ExitStack) -> None:
        self.servers = servers
        self._stack = stack

    @cached_property
    def database(self) -> str:
        """The DSN of an empty database of a PostgreSQL of its own."""
        return self._stack.enter_context(quietly(throwaway_postgres()))["postgres"]

    @cached_property
    def session(self) -> SparkSession:
        return self._stack.enter_context(spark_engine.open_session())


class Experiment:
    """One of the folders with an experiment."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.title = read_title(name)

    @property
    def parameters(self) -> set[str]:
        """What can be given to it."""
        return set(inspect.signature(self._module.run).parameters) - {"lab"}

    def run(self, lab: Lab, **options: int) -> Sequence[Finding]:
        found: Sequence[Finding] = self._module.run(lab, **options)
        return found

    def run_controls(self, lab: Lab) -> Sequence[Finding]:
        found: Sequence[Finding] = self._module.run_controls(lab)
        return found

    @property
    def _module(self) -> ModuleType:
        return import_module(f"lessons.{self.name}.experiment")


def find_experiments() -> list[str]:
    """The names of all experiments."""
    return sorted(path.parent.name for path in FOLDER.glob("*/experiment.py"))
