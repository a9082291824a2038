"""Kafka Streams has a twin for each function of a lesson that it can have one for."""

import pytest

from lessons.lesson import Lesson, find_lessons
from lessons.streams_engine import Twin, find_twins

WITHOUT_TWIN = {"count_unaligned"}
"""Its windows begin at multiples of their advance."""


@pytest.mark.parametrize("name", find_lessons())
def test_each_function_of_a_lesson_has_a_twin(name: str) -> None:
    lesson = Lesson(name)
    functions = {case.function for case in lesson.cases}
    controls = {control.function for case in lesson.cases for control in case.controls}

    assert set(find_twins(lesson)) == (functions | controls) - WITHOUT_TWIN


def test_a_twin_has_the_same_name_as_java_writes_it() -> None:
    twins = find_twins(Lesson("tables"))

    assert twins["count_words_and_gaps"].name_in_java == "countWordsAndGaps"
    assert Twin("count").name_in_java == "count"
