"""The verbs of the lessons run on the broker of the stack, and leave nothing there."""

import asyncio

from aiokafka.admin import AIOKafkaAdminClient

from lessons.lesson import find_lessons
from test_support.system.stack import Stack


def test_lessons_use_the_broker_of_the_stack(stack: Stack) -> None:
    printed = stack.make_output("lessons", "on=faust")

    for name in find_lessons():
        assert any(
            line.startswith(f"{name}: ") and "in Faust, as expected" in line
            for line in printed.splitlines()
        )
    assert not [topic for topic in asyncio.run(list_topics(stack)) if topic.startswith("lesson.")]


def test_the_list_names_each_lesson(stack: Stack) -> None:
    printed = stack.make_output("lesson")

    assert {line.split()[0] for line in printed.splitlines() if line} >= set(find_lessons())


async def list_topics(stack: Stack) -> list[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.hometown.addresses["kafka"])
    await admin.start()
    try:
        return list(await admin.list_topics())
    finally:
        await admin.close()
