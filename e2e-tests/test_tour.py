"""The tour does what it says: each block of commands prints what the page shows."""

import os
import signal
import subprocess
import sys
import time
from threading import Timer

import pytest

from test_support.shown import Block, read_blocks
from test_support.system.stack import CHECKOUT, Stack

TOUR = CHECKOUT / "docs/tour.md"
WRITTEN = "http://127.0.0.1:8001"
"""The address of users-api on the page."""
BLOCK_SECONDS_MAX = 900
"""What hangs is ended after it."""


@pytest.mark.verify(part="tour")
def test_each_block_prints_what_the_tour_shows(empty_stack: Stack) -> None:
    blocks = read_blocks(TOUR.read_text())
    assert [block.kind for block in blocks] == ["sh"] * len(blocks)
    for block in blocks:
        began = time.monotonic()
        printed = type_in(empty_stack, block)
        sys.stdout.write(f"{time.monotonic() - began:7.1f} s  {block.title}\n{printed}\n")
        assert block.find_missing(printed) == [], printed


@pytest.mark.parametrize(
    ("line", "printed", "missing"),
    [
        ("users-worker …OK", "header\nusers-worker  orders.v1  0  OK\n", False),
        ("users-worker …OK", "users-worker  orders.v1  7  STOP", True),
        ("users-worker …OK", "users-worker\n  OK", True),
        ("worker …OK", "users-worker  0  OK", True),
        ("  all …4", "  all    4", False),
        ("a.b", "aXb", True),
        ("…0 wrong", "of 5: 0 wrong", False),
        ("…0 wrong", "of 5: 10 wrong", True),
        ("took 1…", "took 1.5 s", False),
        ("took 1…", "took 15 s", True),
    ],
)
def test_a_line_that_is_shown_has_to_be_printed(line: str, printed: str, missing: bool) -> None:
    assert bool(Block("sh", "make lag\n", f"{line}\n").find_missing(printed)) == missing


def type_in(stack: Stack, block: Block) -> str:
    """Run the commands in a shell, and return what they print."""
    commands = block.content
    if WRITTEN in commands:
        commands = commands.replace(WRITTEN, stack.hometown.addresses["users-api"])
    environment = {**stack.variables, "no_proxy": "127.0.0.1"}
    del environment["OBSERVE_SECONDS"]  # readers have the usual ones
    with subprocess.Popen(
        ["bash", "-c", commands],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as shell:
        limit = Timer(BLOCK_SECONDS_MAX, os.killpg, (shell.pid, signal.SIGKILL))
        limit.start()
        printed, _ = shell.communicate()
        limit.cancel()
    assert shell.returncode == 0, printed
    return printed
