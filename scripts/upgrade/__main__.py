"""python -m scripts.upgrade: bring a later release of the repository into this copy of it.

It needs no more than the packages of the release before, and ends with those of the new one. Then
`finish.py` goes on, in a process of its own, because the merge also brings its code.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from scripts.answers import ANSWERS, parse_answers, read_answers
from scripts.changes import (
    CHECKOUT,
    PYTHON,
    ChangeError,
    clean_environment,
    demand_committed,
    install_packages,
    lock_packages,
    report,
    run_command,
    run_git,
    run_steps,
    unchanged_if_it_fails,
)
from scripts.upgrade.changelog import report_to_do
from scripts.upgrade.merge import UNDO, demand_whole, list_open, merge, settle_lock

RUN = (".py", ".toml", "Makefile", "contracts/released.json")
"""How the names of files end that the rest runs or reads: they cannot have a conflict then."""


def main() -> int:
    """0 if nothing is left to correct; 1 with a line on standard error."""
    parser = argparse.ArgumentParser(
        prog="make upgrade",
        description="Bring a later release into this copy, rewrite its code for it, and check it.",
        epilog=f"After conflicts were resolved, call it again: it goes on. {UNDO}.",
    )
    parser.add_argument("--to", default="", help="the tag of the release; the last one without it")
    to = parser.parse_args().to
    return run_command(lambda: upgrade(CHECKOUT, to), interrupted="make upgrade says how to go on")


def upgrade(root: Path, to: str) -> NoReturn:
    """Merge the release, unless that was done and is not committed, and become `finish.py`.

    Raises:
        ChangeError: this is no copy, a step failed, or a conflict is to be resolved first.
    """
    demand_whole(root)
    release, since = read_release(root), read_committed_release(root)
    if since == release:
        demand_committed(root)
        if to != release:
            merge(root, to)
    elif to not in ("", release):
        raise ChangeError(
            f"the upgrade to {release} is not committed: make upgrade goes on with it, or {UNDO}"
        )
    settle_lock(root)
    demand_resolved(root, since)
    with unchanged_if_it_fails(root):
        steps = [lock_packages("locking the packages"), install_packages("installing them")]
        run_steps(root, steps, report)
    os.chdir(root)
    finish = [PYTHON, "-m", "scripts.upgrade.finish", since]
    os.execve(PYTHON, finish, clean_environment())  # noqa: S606


def read_release(root: Path) -> str:
    """Return the release that the copy is made of.

    Raises:
        ChangeError: this is no copy, or its answers were edited.
    """
    answers = read_answers(root)
    if not answers:
        raise ChangeError(f"this is no copy of a release: it has no {ANSWERS}")
    return get_release(answers)


def read_committed_release(root: Path) -> str:
    """Return the release that the last commit is made of.

    Raises:
        ChangeError: there is none.
    """
    shown = run_git(root, "show", f"HEAD:./{ANSWERS}")
    if shown.returncode != 0:
        raise ChangeError(f"git does not have {ANSWERS}: git add -A, git commit, then again")
    return get_release(parse_answers(shown.stdout))


def get_release(answers: Mapping[str, Any]) -> str:
    """Return the release that answers are about. Raises ChangeError: they have none."""
    if "_commit" not in answers:
        raise ChangeError(f"{ANSWERS} has no `_commit`: bring back the file that git had")
    return str(answers["_commit"])


def demand_resolved(root: Path, since: str) -> None:
    """
    Raises:
        ChangeError: there is a conflict in what the rest runs or reads; what is to be done for the
            release was printed.
    """
    if blocking := [file for file in list_open(root) if file.endswith(RUN)]:
        report_to_do(root, since, report)
        raise ChangeError(
            f"both changed the same lines of {', '.join(blocking)}: resolve the conflicts there, "
            "then make upgrade goes on"
        )


if __name__ == "__main__":
    sys.exit(main())
