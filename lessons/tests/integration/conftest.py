"""One session of Spark and one broker for all lessons."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from lessons.broker import PREFIX, open_topics
from lessons.lab import Lab


@pytest.fixture(scope="session")
def lab(kafka_servers: str) -> Iterator[Lab]:
    # A process in the background ignores Ctrl-C from its start; one in a terminal does not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with ExitStack() as stack:
        yield Lab(kafka_servers, stack)
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def find_topics(kafka_servers: str) -> Callable[[], Sequence[str]]:
    """Finds the topics of lessons that the broker has."""

    async def find() -> Sequence[str]:
        async with open_topics(kafka_servers) as topics:
            return await topics.find(PREFIX)

    return lambda: asyncio.run(find())
