"""One whole system for all end-to-end tests."""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import pytest

from local_stack.run_folder import RunFolder
from local_stack.testing import new_folder, sweep
from test_support.system.clients import Hometown
from test_support.system.cluster_stack import ClusterStack
from test_support.system.container_stack import ContainerStack
from test_support.system.eventually import eventually
from test_support.system.foreign import Proxy, foreign_variables, listening_proxy
from test_support.system.process_stack import ProcessStack
from test_support.system.sample import HOUR, Sample, load
from test_support.system.scene import Scene, new_scene
from test_support.system.stack import Stack
from test_support.system.telemetry import Record, Signal, Telemetry

KINDS: dict[str, type[Stack]] = {
    kind.way: kind for kind in (ProcessStack, ContainerStack, ClusterStack)
}
KIND = KINDS[os.environ.get("HOMETOWN_TEST_IN", ProcessStack.way)]

PUBLISHED = ("HOMETOWN_IMAGES", "HOMETOWN_VERSION")
if KIND is not ProcessStack and (found := [name for name in PUBLISHED if os.environ.get(name)]):
    raise pytest.UsageError(f"{' and '.join(found)}: tests are of the images of the checkout")

OWN_FOLDERS = {ContainerStack: "in_containers", ClusterStack: "in_cluster"}
"""Tests for one kind of stack."""

collect_ignore = [folder for kind, folder in OWN_FOLDERS.items() if kind is not KIND]

JAEGER_SECONDS_MAX = 900
"""At the very first run, Jaeger may have to be built."""

TRACES = {"TRACES_PER_SECOND_MAX": "1000"}
"""More than any test begins: none looks for the trace of an order that has none."""

HOURS_APART = 3
"""More than the lateness that analytics allows, so that each test has its own hour."""


@pytest.fixture(scope="session")
def proxy() -> Iterator[Proxy]:
    """The proxy of the environment in which the stack is started."""
    with listening_proxy() as proxy:
        yield proxy


@pytest.fixture(scope="session")
def fresh_stack(proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that is not started yet. Containers get no environment of the caller's."""
    sweep()
    variables = {**TRACES}
    if KIND is ProcessStack:
        variables |= foreign_variables(proxy, tmp_path_factory.mktemp("foreign"))
    fresh = KIND(RunFolder(new_folder()), variables)
    try:
        yield fresh
    finally:
        fresh.make_output("clean")


@pytest.fixture
def empty_stack() -> Iterator[Stack]:
    """Yield a stack of one test alone, which does not run yet."""
    empty = KIND(RunFolder(new_folder()))
    try:
        yield empty
    finally:
        empty.make_output("clean")


@pytest.fixture(scope="session")
def first_demo(fresh_stack: Stack) -> str:
    """What the demonstration printed on the fresh system."""
    return fresh_stack.make_output("demo")


@pytest.fixture(scope="session")
def first_telemetry(fresh_stack: Stack, first_demo: str) -> Mapping[Signal, Sequence[Record]]:
    """What the system shows from its start to the end of the demonstration."""
    hometown = fresh_stack.hometown
    telemetry = Telemetry(fresh_stack, hometown, since_start=True)
    try:
        signals: list[Signal] = ["series", "lines"]
        if hometown.jaeger_answers():  # at the very first run it is still being built
            signals.append("spans")
        return {signal: telemetry.read(signal) for signal in signals}
    finally:
        hometown.http.close()


@pytest.fixture(scope="session")
def stack(fresh_stack: Stack, first_telemetry: Mapping[Signal, Sequence[Record]]) -> Stack:
    """A running stack. The demonstration ran first: its hour is older than those of the tests."""
    return fresh_stack


@pytest.fixture(scope="session")
def cluster(stack: Stack) -> ClusterStack:
    """The same for tests of a cluster."""
    assert isinstance(stack, ClusterStack)
    return stack


@pytest.fixture
def hometown(stack: Stack) -> Iterator[Hometown]:
    hometown = stack.hometown
    yield hometown
    hometown.http.close()


@pytest.fixture
def jaeger(stack: Stack, hometown: Hometown) -> None:
    """Wait until Jaeger responds; fail at once if it never will."""

    def looked() -> bool:
        stack.demand_jaeger()
        return hometown.jaeger_answers()

    eventually(looked, lambda there: there, what="Jaeger", seconds_max=JAEGER_SECONDS_MAX)


@pytest.fixture(scope="session")
def hours_later() -> Iterator[timedelta]:
    """Distances from the demonstration's hour, each later than the last."""
    return (timedelta(hours=HOURS_APART * number) for number in itertools.count(1))


@pytest.fixture
def hour(hours_later: Iterator[timedelta]) -> datetime:
    """An hour for this test only. An order of today would make those of all other tests late."""
    return HOUR + next(hours_later)


@pytest.fixture(scope="session")
def scene(stack: Stack, hours_later: Iterator[timedelta]) -> Iterator[Scene]:
    """What attacks aim at, in an hour of its own."""
    hometown = stack.hometown
    yield new_scene(hometown, stack.folder, HOUR + next(hours_later))
    hometown.http.close()


@pytest.fixture
def gap(hours_later: Iterator[timedelta]) -> datetime:
    """The hour before those of `make load` in this test: they reach into the next one's."""
    first, _ = next(hours_later), next(hours_later)
    return HOUR + first


@pytest.fixture
def sample(hometown: Hometown, hour: datetime) -> Sample:
    """The sample, loaded once more with its own users and items, into an hour of its own."""
    return load(hometown, hour)
