"""What a developer runs next to a real stack: `make dev` and `make doctor`."""

import os

import pytest

from test_support.interrupted import interrupted
from test_support.system.process_stack import ProcessStack
from test_support.system.stack import CHECKOUT, Stack

RESTARTED = {"users-api", "users-relay", "users-worker"}


@pytest.fixture(autouse=True)
def processes(stack: Stack) -> None:
    if stack.way != ProcessStack.way:
        pytest.skip("files are watched for processes alone")


def test_a_saved_file_restarts_its_service_and_nothing_else(stack: Stack) -> None:
    before = stack.lives()
    with interrupted(["make", "dev"], CHECKOUT, stack.variables) as printed:
        lines = printed.lines
        assert any(line.startswith("watching shared/src/shared, ") for line in lines)
        os.utime(CHECKOUT / "users-svc/src/users_svc/__init__.py")
        assert "saved users-svc/src/users_svc/__init__.py\n" in lines
        done: set[str] = set()
        while done < RESTARTED:
            name, _, rest = next(lines).partition(" ")
            if "after" in rest:
                done.add(name)

    after = stack.lives()
    assert "no longer watching; `make down` stops the stack" in printed.rest
    assert done == RESTARTED
    assert after.keys() == before.keys()
    assert {name for name in before if after[name] != before[name]} == RESTARTED - {"users-api"}, (
        "an API that is replaced keeps its process id"
    )


def test_the_ports_of_a_stack_that_runs_are_its_own(stack: Stack) -> None:
    printed = stack.make_output("doctor")

    [ports] = [line for line in printed.splitlines() if " ports " in line]
    assert ports.startswith("ok ")
    assert ports.endswith(" are those of the stack that runs here")
