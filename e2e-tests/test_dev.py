"""What a developer runs next to a real stack: `make dev`, `make debug` and `make doctor`."""

import os

import pytest

from test_support.interrupted import interrupted
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
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


def test_a_process_runs_in_the_terminal_in_place_of_the_one_of_the_stack(
    stack: Stack, hometown: Hometown
) -> None:
    before = stack.lives()
    command = ["make", "debug", "name=users-api"]

    with interrupted(command, CHECKOUT, stack.variables) as printed:
        assert any("runs here; Ctrl-C gives it back to the stack" in line for line in printed.lines)
        eventually(lambda: hometown.list_users(limit=1), bool, what="users-api responds")
        assert stack.lives().keys() == before.keys() - {"users-api"}

    assert "users-api        ready after" in printed.rest
    after = stack.lives()
    assert {name for name in before if after[name] != before[name]} == {"users-api"}


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("kafka", "kafka has no code of ours to debug; name one of users-api, "),
        ("none", "no process"),
    ],
)
def test_what_cannot_run_in_the_terminal_is_not_stopped(
    stack: Stack, name: str, complaint: str
) -> None:
    before = stack.lives()

    ended = stack.make("debug", f"name={name}")

    assert ended.returncode != 0
    assert complaint in ended.stderr
    assert stack.lives() == before


def test_the_ports_of_a_stack_that_runs_are_its_own(stack: Stack) -> None:
    printed = stack.make_output("doctor")

    [ports] = [line for line in printed.splitlines() if " ports " in line]
    assert ports.startswith("ok ")
    assert ports.endswith(" are those of the stack that runs here")
