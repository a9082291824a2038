"""Each lesson answers as it says, and what it warns of leads to something else."""

import pytest

from lessons.grid import read_grid
from lessons.lab import Lab
from lessons.lesson import Column, Lesson, find_lessons
from lessons.running import get_columns, run_with_controls

RESULTS = [(name, column) for name in find_lessons() for column in get_columns(Lesson(name))]


@pytest.mark.parametrize(("name", "column"), RESULTS)
def test_a_lesson_leads_to_what_it_claims_and_the_grid_says(
    lab: Lab, name: str, column: Column
) -> None:
    result = run_with_controls(lab, Lesson(name), column)

    assert result.problems == []
    assert result.controls
    assert read_grid()[name, column] == str(result)
