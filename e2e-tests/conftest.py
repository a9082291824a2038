"""One whole system for all end-to-end tests."""

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from clients import Hometown
from embedded.run_folder import RunFolder
from embedded.testing import new_folder, sweep
from sample import HOUR, Sample, load
from stack import ShownStack, Stack

HOURS_APART = 3
"""More than the lateness that analytics allows: each test has its hour for itself."""


@pytest.fixture(scope="session")
def stack() -> Iterator[ShownStack]:
    """Everything is up. The demonstration ran first: its hour is older than those of the tests."""
    sweep()
    folder = RunFolder(new_folder())
    fresh = Stack(folder)
    try:
        yield ShownStack(folder, fresh.made("demo"))
    finally:
        fresh.made("clean")


@pytest.fixture
def hometown(stack: Stack) -> Iterator[Hometown]:
    hometown = stack.hometown
    yield hometown
    hometown.http.close()


@pytest.fixture(scope="session")
def hours_later() -> Iterator[timedelta]:
    """Distances from the demonstration's hour, each later than the last."""
    return (timedelta(hours=HOURS_APART * number) for number in itertools.count(1))


@pytest.fixture
def hour(hours_later: Iterator[timedelta]) -> datetime:
    """An hour of this test alone. An order of today would make those of all other tests late."""
    return HOUR + next(hours_later)


@pytest.fixture
def sample(hometown: Hometown, hour: datetime) -> Sample:
    """The sample, loaded once more with its own users and items, into an hour of its own."""
    return load(hometown, hour)
