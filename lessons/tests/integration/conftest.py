"""One session of Spark and one broker for all lessons."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from lessons.lab import Lab


@pytest.fixture(scope="session")
def lab(kafka_servers: str) -> Iterator[Lab]:
    # A process in the background ignores Ctrl-C from its start; one in a terminal does not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with ExitStack() as stack:
        yield Lab(kafka_servers, stack)
    signal.signal(signal.SIGINT, before)
