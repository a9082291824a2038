"""Two containers of a worker share its consumer group while clients send requests."""

import time
from collections.abc import Sequence
from datetime import datetime

import pytest

from shared.runtime.declarations import load_declarations
from test_support.system.clients import Hometown
from test_support.system.container_stack import ContainerStack
from test_support.system.eventually import eventually
from test_support.system.stack import Stack
from test_support.system.traffic import send_while

WORKERS = load_declarations().names_of("worker")
TIMES = 10
FROZEN_SECONDS = 10
"""Longer than a worker's session with Kafka."""


def scale(stack: ContainerStack, name: str, count: int) -> Sequence[str]:
    """Let so many containers of a worker run and be ready; their ids, the oldest one first."""
    options = ("--detach", "--wait", "--no-deps", "--no-recreate", "--scale", f"{name}={count}")
    stack.project.output("up", *options, name)
    ids = stack.project.output("ps", "--quiet", name).split()
    inspected = {each: stack.project.docker("inspect", "-f", "{{.Created}}", each) for each in ids}
    return sorted(ids, key=lambda each: inspected[each])


@pytest.mark.parametrize("name", WORKERS)
def test_no_request_fails_while_a_second_one_joins_and_leaves(
    stack: Stack, hometown: Hometown, hour: datetime, name: str
) -> None:
    assert isinstance(stack, ContainerStack)
    [first] = scale(stack, name, 1)

    def join_and_leave() -> None:
        for _ in range(TIMES):
            assert scale(stack, name, 2)[0] == first
            assert scale(stack, name, 1) == [first]

    traffic = send_while(hometown, hour, join_and_leave)

    assert traffic.failed == {}
    assert stack.project.docker("inspect", "-f", "{{.RestartCount}}", first).strip() == "0"


@pytest.mark.parametrize("name", WORKERS)
def test_no_request_fails_while_one_of_two_is_frozen(
    stack: Stack, hometown: Hometown, hour: datetime, name: str
) -> None:
    assert isinstance(stack, ContainerStack)
    first, second = scale(stack, name, 2)

    def freeze() -> None:
        stack.project.docker("pause", first)
        time.sleep(FROZEN_SECONDS)
        stack.project.docker("unpause", first)

    traffic = send_while(hometown, hour, freeze)

    assert traffic.failed == {}
    for each in (first, second):
        assert stack.project.docker("inspect", "-f", "{{.RestartCount}}", each).strip() == "0"
    eventually(
        lambda: stack.project.docker("inspect", "-f", "{{.State.Health.Status}}", first).strip(),
        lambda status: status == "healthy",
        what="the worker that was frozen is healthy",
    )
    scale(stack, name, 1)
