"""One session of Spark and one broker for all lessons."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from lessons.lab import Lab


@pytest.fixture(scope="session")
def lab(kafka_servers: str) -> Iterator[Lab]:
    with ExitStack() as stack:
        yield Lab(kafka_servers, stack)
