"""The tour does what it says: each block of commands runs and prints what the tour shows."""

import re
import subprocess
from collections.abc import Iterator

import pytest

from local_stack.run_folder import RunFolder
from local_stack.testing import new_folder
from test_support.shown import to_pattern
from test_support.system.process_stack import ProcessStack
from test_support.system.stack import CHECKOUT, Stack

TOUR = CHECKOUT / "docs" / "tour.md"
BLOCKS = re.findall(r"```sh\n(.+?)```\n\n```text\n(.+?)```", TOUR.read_text(), re.DOTALL)
BLOCK_SECONDS_MAX = 900


@pytest.fixture
def visitor() -> Iterator[Stack]:
    """A stack that is not started yet, of this test alone: a tour begins with an empty one."""
    stack = ProcessStack(RunFolder(new_folder()))
    try:
        yield stack
    finally:
        stack.make_output("clean")


@pytest.mark.long
def test_each_block_prints_what_the_tour_shows(visitor: Stack) -> None:
    assert len(BLOCKS) == TOUR.read_text().count("```sh")
    for commands, shown in BLOCKS:
        printed = run(visitor, commands)
        for line in shown.splitlines():
            assert re.search(to_pattern(line), printed, re.MULTILINE), (
                f"no line like {line!r} in:\n{printed}"
            )


def run(stack: Stack, commands: str) -> str:
    ended = subprocess.run(
        ["bash", "-c", commands],
        cwd=CHECKOUT,
        env=stack.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BLOCK_SECONDS_MAX,
        check=True,
    )
    return ended.stdout


@pytest.mark.parametrize(
    ("line", "printed", "matches"),
    [
        ("users-worker …OK", "users-worker  orders.v1  0  OK", True),
        ("users-worker …OK", "users-worker  orders.v1  7  STOP", False),
        ("…all …4", "  all    4", True),
        ("a.b", "aXb", False),
    ],
)
def test_a_line_is_compared_but_for_what_differs(line: str, printed: str, matches: bool) -> None:
    assert bool(re.search(to_pattern(line), printed, re.MULTILINE)) == matches
