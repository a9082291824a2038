"""The previous release: a checkout of its commit with packages of its own, next to this one."""

import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fetching.errors import Failure
from local_stack.settings import CHECKOUT
from local_stack.stack_spec import Process, StackContext, StackSpec

SETUP_SECONDS_MAX = 1800
GIT_SECONDS_MAX = 60
DETAILS_MAX = 15


def find_release() -> str | None:
    """The newest tag before this commit; None if there is none."""
    ended = call("git", "describe", "--tags", "--abbrev=0", "HEAD~1")
    return ended.stdout.strip() or None


@contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Path]:
    """The interpreter of a commit's own environment; the folder is removed afterwards.

    Raises:
        Failure: there is no such commit, or its packages cannot be installed.
    """
    demand(call("git", "worktree", "add", "--detach", str(folder), revision), revision)
    try:
        demand(call("make", "-C", str(folder), "setup"), revision)
        yield folder / ".venv" / "bin" / "python"
    finally:
        call("git", "worktree", "remove", "--force", str(folder))


def call(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=GIT_SECONDS_MAX if command[0] == "git" else SETUP_SECONDS_MAX,
        check=False,
    )


def demand(ended: subprocess.CompletedProcess[str], revision: str) -> None:
    if ended.returncode != 0:
        lines = (ended.stdout + ended.stderr).splitlines()[-DETAILS_MAX:]
        raise Failure(f"{revision} cannot be run: see below", details=lines)


def run_with(python: Path, spec: StackSpec, names: Collection[str]) -> StackSpec:
    """The stack with these processes run by another interpreter, with its packages."""

    def change(process: Process) -> Process:
        def command(context: StackContext) -> Sequence[str]:
            return [str(python), *process.command(context)[1:]]

        return replace(process, command=command)

    processes = (change(each) if each.name in names else each for each in spec.processes)
    return replace(spec, processes=tuple(processes))
