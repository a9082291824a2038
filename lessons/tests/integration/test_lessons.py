"""Each lesson answers as it says, and what it warns of leads to something else."""

import pytest

from lessons.lab import Lab
from lessons.lesson import ENGINES, Engine, Lesson, find_lessons
from lessons.running import answer, get_controls, get_functions


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", find_lessons())
def test_an_engine_answers_as_the_vector_says(lab: Lab, name: str, engine: Engine) -> None:
    outcomes = answer(lab, engine, name, get_functions(Lesson(name)), {})

    assert {each.case.name: each.differences for each in outcomes if each.differences} == {}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", find_lessons())
def test_what_a_lesson_warns_of_leads_to_differences(lab: Lab, name: str, engine: Engine) -> None:
    controls = get_controls(Lesson(name))
    assert controls

    outcomes = answer(lab, engine, name, controls, {})

    assert all(each.differences for each in outcomes)
