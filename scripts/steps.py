"""Steps of a command that changes a checkout: programs that renew what follows from its files."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

LOCK = "uv.lock"
SIZE = re.compile(r", size = [0-9]+")
PYTHON = ".venv/bin/python"
MAKE = ("make", "--no-print-directory")
STEP_SECONDS_MAX = 1800
"""For a step that can wait for a package registry."""

Report = Callable[[str], None]
Step = tuple[str, Sequence[str]]
"""What a command does, and the command."""


class StepFailed(Exception):
    """The message says which step, and `lines` are what it printed, at least one."""

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__(f"{title} failed ({lines[-1]})")
        self.title = title
        self.lines = lines


def lock_packages(title: str) -> Step:
    """For this interpreter: uv would look for the one that `.python-version` names."""
    return title, [".tools/bin/uv", "lock", "--python", sys.executable]


def install_packages(title: str) -> Step:
    return title, [*MAKE, "setup"]


def write_generated(contracts: str) -> list[Step]:
    """The contracts, and what `make generate` writes."""
    return [
        (contracts, [PYTHON, "-m", "contracts", "write"]),
        ("generating what follows from service.toml", [*MAKE, "generate"]),
    ]


def run_steps(root: Path, steps: Sequence[Step], report: Report) -> None:
    """Run them one after the other.

    Raises:
        StepFailed: a step failed; those after it did not run.
    """
    had_sizes = SIZE.search((root / LOCK).read_text())
    for title, command in steps:
        report(title)
        run_step(root, title, command)
        if not had_sizes:
            remove_sizes(root / LOCK)


def run_step(root: Path, title: str, command: Sequence[str]) -> None:
    """Raises StepFailed."""
    try:
        ended = subprocess.run(
            command,
            cwd=root,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=STEP_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StepFailed(title, [str(error)]) from error
    if ended.returncode != 0:
        raise StepFailed(title, ended.stdout.strip().splitlines() or ["no output"])


def clean_environment() -> dict[str, str]:
    """The environment without what would make the steps a part of a running `make`."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MAKE") and name != "VIRTUAL_ENV"
    }


def remove_sizes(lock: Path) -> None:
    """Not every registry gives them, so that a lock without them stays without."""
    text = lock.read_text()
    if (shorter := SIZE.sub("", text)) != text:
        lock.write_text(shorter)
