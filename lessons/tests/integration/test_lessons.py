"""Each lesson answers as it says, and what it warns of leads to something else."""

import pytest

from lessons.experiment import Experiment, Lab, find_experiments
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


@pytest.mark.parametrize("name", find_experiments())
def test_an_experiment_finds_what_it_claims(lab: Lab, name: str) -> None:
    findings = Experiment(name).run(lab)

    assert findings
    assert [each for each in findings if not each.holds] == []


@pytest.mark.parametrize("name", find_experiments())
def test_without_the_mechanism_the_claims_of_an_experiment_fail(lab: Lab, name: str) -> None:
    findings = Experiment(name).run_controls(lab)

    assert findings
    assert [each for each in findings if each.holds] == []
