"""The verbs of the lessons run on the broker of the stack, and leave nothing there."""

import asyncio
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from fetching.java_compiler import has_java_compiler
from lessons.exercises import Exercise
from lessons.lesson import Lesson, find_lessons
from test_support.system.stack import Stack

LONG = pytest.mark.verify(part="lessons")


@LONG
def test_lessons_use_the_broker_of_the_stack(stack: Stack) -> None:
    printed = stack.make_output("lessons", "on=faust")

    for name in find_lessons():
        verdicts = [line for line in printed.splitlines() if line.startswith(f"{name}: Faust ")]
        assert len(verdicts) == bool(Lesson(name).cases)
        assert all("as expected" in verdict for verdict in verdicts)
    assert not [topic for topic in asyncio.run(list_topics(stack)) if topic.startswith("lesson.")]


@pytest.mark.parametrize(
    ("engine", "title"),
    [
        ("faust", "Faust"),
        pytest.param(
            "streams",
            "Kafka Streams",
            marks=[LONG, pytest.mark.skipif(not has_java_compiler(), reason="no javac")],
        ),
    ],
)
def test_a_case_runs_alone(stack: Stack, engine: str, title: str) -> None:
    printed = stack.make_output("lesson", "name=windows", "case=hopping", f"on={engine}")

    assert "hopping (count_hopping)" in printed
    assert "tumbling (" not in printed
    assert f"windows: {title} 1 of 1 cases, as expected" in printed


def test_the_list_names_each_lesson(stack: Stack) -> None:
    printed = stack.make_output("lesson")

    assert {line.split()[0] for line in printed.splitlines() if line} >= set(find_lessons())


@LONG
def test_an_exercise_is_checked_in_a_folder(stack: Stack, tmp_path: Path) -> None:
    name = find_lessons()[-1]
    exercise = Exercise(Lesson(name), tmp_path)
    exercise.copy()
    with exercise.path.open("a") as program:
        program.write(exercise.solutions[0].read_text())

    printed = stack.make_output("learn", f"name={name}", f"folder={tmp_path}")

    assert f"{name} is solved" in printed
    assert "all exercises are solved" in printed


async def list_topics(stack: Stack) -> list[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.hometown.addresses["kafka"])
    await admin.start()
    try:
        return list(await admin.list_topics())
    finally:
        await admin.close()
