"""A lesson's experiment: what was found, next to what is claimed of it.

It is a module `experiment` in the folder of a lesson: `run` takes a Lab and returns findings that
must hold, `run_controls` those that must not, as the mechanism behind the claim is left out. The
other parameters of `run` are those of the lesson; QUICK has values for a run in a test. If the
lesson has no cases, `check` puts a function of an exercise to the experiment.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from lessons.lab import Lab
from lessons.lesson import FOLDER, Lesson, Row, count_right

FILE = "experiment.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row of the table that an experiment prints: what was found, what is claimed of it, and what
    differs from the claim. The note is printed below the table."""

    row: Row
    claim: str
    difference: str = ""
    note: str = ""

    @property
    def holds(self) -> bool:
        return not self.difference

    @property
    def subject(self) -> str:
        """The first value of the row."""
        return str(next(iter(self.row.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What came of an experiment, and of its controls."""

    claims: Sequence[Finding]
    controls: Sequence[Finding] = ()

    @property
    def problems(self) -> list[str]:
        """Claims that do not hold, and controls whose claims do."""
        wrong = [
            f"{each.subject}: {each.claim}: {each.difference}"
            for each in self.claims
            if not each.holds
        ]
        equal = [
            f"{each.subject} must be wrong: {each.claim}" for each in self.controls if each.holds
        ]
        return wrong + equal

    def __str__(self) -> str:
        claims, controls = (
            [each.holds for each in findings] for findings in (self.claims, self.controls)
        )
        return count_right("claims", claims, controls)


class Experiment:
    def __init__(self, lesson: Lesson) -> None:
        self._module: ModuleType = import_module(f"lessons.{lesson.name}.experiment")

    @property
    def parameters(self) -> set[str]:
        return set(inspect.signature(self._module.run).parameters) - {"lab"}

    def run(self, lab: Lab, options: Mapping[str, int]) -> Findings:
        """Raises what the experiment raises."""
        return Findings(claims=self._module.run(lab, **options))

    def run_with_controls(self, lab: Lab) -> Findings:
        """Run it as in a test."""
        claims = self._module.run(lab, **self._module.QUICK)
        return Findings(claims=claims, controls=self._module.run_controls(lab))

    def check(self, lab: Lab, program: Path, function: str) -> Findings:
        """Run a function of a learner's program. Raises what it raises."""
        findings: Findings = self._module.check(lab, program, function)
        return findings


def has_experiment(lesson: Lesson) -> bool:
    return (FOLDER / lesson.name / FILE).exists()
