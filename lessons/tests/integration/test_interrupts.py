"""Ctrl-C ends a lesson in an orderly way, with Spark in the process."""

import asyncio
import signal

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lessons.broker import PREFIX, open_topics
from lessons.lab import Lab
from lessons.lesson import Lesson
from lessons.running import answer


async def find_topics(servers: str) -> list[str]:
    async with open_topics(servers) as topics:
        return [name for name in await topics.admin.list_topics() if name.startswith(PREFIX)]


def interrupt(records: DataFrame) -> DataStreamWriter:
    """A query, while which is made Ctrl-C is pressed."""
    signal.raise_signal(signal.SIGINT)
    return records.groupBy("key").count().writeStream.outputMode("update")


def test_an_interrupt_stops_the_query_and_removes_its_topics(lab: Lab) -> None:
    lesson = Lesson("tables")

    with pytest.raises(KeyboardInterrupt):
        answer(lab, "spark", lesson, [(lesson.cases[0], interrupt)], {})

    assert list(lab.session.streams.active) == []
    assert asyncio.run(find_topics(lab.servers)) == []
