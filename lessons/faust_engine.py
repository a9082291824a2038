"""Faust as an engine of lessons: an application for each case."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

import faust
from aiokafka import TopicPartition

from lessons.broker import Topics
from lessons.lesson import Case, Rows, Topic
from lessons.settling import STEP_SECONDS_MAX, find_unread, wait_until_settled

COMMIT_SECONDS = 0.1
"""By the committed offsets, the end of a step is noticed."""
SEND_SECONDS_MAX = 60.0
"""By default, what cannot be sent ends after 20 minutes, and a flush and a stop wait for it."""

Answer = Callable[..., None]
"""Adds agents to an application; they read `records[topic]`, raw, and send rows to `out`."""


async def run_case(
    topics: Topics, prefix: str, case: Case, answer: Answer, options: Mapping[str, int]
) -> list[Rows]:
    """Publish a case step by step, to topics that begin with the prefix.

    Returns:
        The rows of each step, as the function sent them.

    Raises:
        TimeoutError: the function does not read to the end.
    """
    out = f"{prefix}out"
    await topics.create([out, *(f"{prefix}{topic}" for topic in case.topics)])
    with tempfile.TemporaryDirectory(prefix="hometown-lesson-") as folder:
        app = make_app(f"{prefix}{time.time_ns()}", topics.servers, folder)
        records = read_records(app, prefix, case.topics)
        answer(app, records, app.topic(out, value_serializer="json"), **options)
        answers: list[Rows] = []
        async with topics.open_reader(out) as reader, running(app, topics):
            for step in case.steps:
                await topics.publish(prefix, step.records)
                await wait_until_read(topics, app)
                answers.append(await reader.read_to_end())
    return answers


def read_records(app: faust.App, prefix: str, topics: Iterable[str]) -> Mapping[str, Topic]:
    """Topics of an application by their names, with keys and values as bytes."""
    return {
        topic: app.topic(f"{prefix}{topic}", key_serializer="raw", value_serializer="raw")
        for topic in topics
    }


def make_topic(app: faust.App, name: str) -> Topic:
    """A topic of an application alone, by another key."""
    return app.topic(
        f"{app.conf.id}-{name}",
        partitions=1,
        internal=True,
        key_serializer="raw",
        value_serializer="raw",
    )


@asynccontextmanager
async def running(
    app: faust.App, topics: Topics, seconds_max: float = STEP_SECONDS_MAX
) -> AsyncIterator[None]:
    """Run an application; inside, its agents have read what is there, and read what comes."""
    app.finalize()
    await topics.create(get_read_topics(app) | app.tables.changelog_topics, may_exist=True)
    try:
        # Inside: a start that is interrupted has started threads, which keep the process alive.
        await app.start()
        # Faust drops what it fetches before its streams have resumed.
        recovery = app.tables.recovery  # type: ignore[attr-defined]
        await asyncio.wait_for(recovery.completed.wait(), STEP_SECONDS_MAX)
        await wait_until_read(topics, app, seconds_max)
        yield
    finally:
        await app.stop()


def make_app(name: str, servers: str, folder: str, store: str = "memory://") -> faust.App:
    return faust.App(
        name,
        broker=f"kafka://{servers}",
        store=store,
        datadir=folder,
        web_enabled=False,
        topic_disable_leader=True,
        topic_partitions=1,
        # `running` creates them. One that Faust creates can come too late: an agent that reads it
        # is given no partition, and a producer that sends to it loses rows of other topics. Faust
        # makes its producer ask for all topics, whose names the client does not keep; when it asks
        # for one by name, it forgets all others, and what is on its way to them is not sent.
        topic_allow_declare=False,
        producer_request_timeout=SEND_SECONDS_MAX,
        consumer_auto_offset_reset="earliest",
        broker_commit_interval=COMMIT_SECONDS,
        stream_wait_empty=False,
        autodiscover=False,
    )


def get_read_topics(app: faust.App) -> set[str]:
    return {name for agent in app.agents.values() for name in agent.channel.topics}


async def wait_until_read(
    topics: Topics, app: faust.App, seconds_max: float = STEP_SECONDS_MAX
) -> None:
    """Until the agents have committed all that their topics have, and sent all rows.

    Raises:
        TimeoutError: they have not, within so many seconds.
    """

    async def flush_and_find() -> set[str]:
        # What an agent sends is on its way when its record is committed.
        await app.producer.flush()
        return await find_unread_of(topics, app)

    await wait_until_settled(flush_and_find, f"the agents of {app.conf.id}", seconds_max)


async def find_unread_of(topics: Topics, app: faust.App) -> set[str]:
    """The topics of the agents that have more than was committed, or are not assigned yet."""
    read = get_read_topics(app)
    assigned = [TopicPartition(*place) for place in app.assignor.assigned_actives()]
    places = [place for place in assigned if place.topic in read]
    unread = await find_unread(topics, app.conf.id, places)
    return unread | (read - {place.topic for place in places})
