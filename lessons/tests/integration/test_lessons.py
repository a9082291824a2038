"""Each lesson answers as it says, and what it warns of leads to something else."""

import pytest

from lessons.grid import read_grid
from lessons.lab import Lab
from lessons.lesson import ENGINES, Engine, Lesson, find_lessons
from lessons.running import answer_all


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", find_lessons())
def test_an_engine_answers_as_the_vector_and_the_grid_say(
    lab: Lab, name: str, engine: Engine
) -> None:
    result = answer_all(lab, engine, Lesson(name))

    assert result.problems == []
    assert result.cases
    assert result.controls
    assert read_grid()[name, engine] == str(result)
