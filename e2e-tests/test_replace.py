"""A process of a running stack is replaced: an API without a failed request."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from test_support.system.clients import Hometown
from test_support.system.process_stack import ProcessStack
from test_support.system.stack import Stack


@pytest.fixture(autouse=True)
def processes(stack: Stack) -> None:
    if stack.way != ProcessStack.way:
        pytest.skip("replacement in containers and in a cluster has its own tests")


def test_an_api_is_replaced_without_a_failed_request(stack: Stack, hometown: Hometown) -> None:
    before = stack.lives()["users-api"]
    answered = 0
    with ThreadPoolExecutor(max_workers=1) as others:
        replacing = others.submit(stack.make_output, "replace", "name=users-api")
        while not replacing.done():
            hometown.list_users(limit=1)
            answered += 1

    assert "replaced after" in replacing.result()
    assert answered
    assert stack.lives()["users-api"] == before, "it is the same process"


def test_what_does_not_run_is_not_replaced(stack: Stack) -> None:
    stack.stop(["orders-relay"])
    try:
        ended = stack.make("replace", "name=orders-relay")
    finally:
        stack.start(["orders-relay"])

    assert ended.returncode != 0
    assert "does not run here" in ended.stderr
