"""What a developer runs next to a real stack: `make dev` and `make doctor`."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

import pytest

from test_support.system.process_stack import ProcessStack
from test_support.system.stack import CHECKOUT, Stack

RESTARTED = {"users-api", "users-relay", "users-worker"}
SECONDS_MAX = 300
STOP_SECONDS_MAX = 60


@pytest.fixture(autouse=True)
def processes(stack: Stack) -> None:
    if stack.way != ProcessStack.way:
        pytest.skip("files are watched for processes alone")


@contextmanager
def make(stack: Stack, verb: str) -> Iterator[Iterator[str]]:
    """The lines that `make` prints; at the end it gets what Ctrl-C sends."""
    with subprocess.Popen(
        ["make", "--no-print-directory", "-C", CHECKOUT, verb],
        env=stack.variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        lines = iter(process.stdout)
        limit = Timer(SECONDS_MAX, os.killpg, (process.pid, signal.SIGINT))
        limit.start()  # the lines end, and the test fails
        try:
            yield lines
        finally:
            limit.cancel()
            os.killpg(process.pid, signal.SIGINT)
            rest = "".join(lines)
            process.wait(STOP_SECONDS_MAX)
    assert "no longer watching; the stack still runs: `make down` stops it" in rest


def test_a_saved_file_restarts_its_service_and_nothing_else(stack: Stack) -> None:
    before = stack.lives()
    with make(stack, "dev") as lines:
        assert any(line.startswith("watching shared/src/shared, ") for line in lines)
        os.utime(CHECKOUT / "users-svc/src/users_svc/__init__.py")
        reported = next(line for line in lines if "restarted after" in line)

    after = stack.lives()
    assert reported.startswith(", ".join(sorted(RESTARTED)))
    assert reported.endswith("s: users-svc/src/users_svc/__init__.py\n")
    assert after.keys() == before.keys()
    assert {name for name in before if after[name] != before[name]} == RESTARTED - {"users-api"}, (
        "an API that is replaced keeps its process id"
    )


def test_the_ports_of_a_stack_that_runs_are_its_own(stack: Stack) -> None:
    printed = stack.make_output("doctor")

    [ports] = [line for line in printed.splitlines() if " ports " in line]
    assert ports.startswith("ok ")
    assert ports.endswith(" are those of the stack that runs here")
