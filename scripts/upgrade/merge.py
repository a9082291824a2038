"""Merge a release into the checkout of its owner, by copier; and what that leaves there."""

import subprocess
from pathlib import Path

from scripts.answers import ANSWERS
from scripts.changes import (
    LOCK,
    STEP_SECONDS_MAX,
    ChangeError,
    clean_environment,
    find_reason,
    run_git,
    split_paths,
)

COPIER_PACKAGE = "copier~=9.19"
UNDO = "git reset --hard and git clean -fd undo it until it is committed"

MARK = "upgrade-begun"
"""The name of a file in git's own folder, which is there while not all changes of the owner are in
the files. It has the commit that the merge began with."""
MARKERS = "^(<<<<<<< before updating|>>>>>>> after updating)[[:space:]]*$"
"""Of a conflict, as copier writes it: these stay where one is half resolved, and after git add."""


def find_mark(root: Path) -> Path:
    return root / run_git(root, "rev-parse", "--git-path", MARK).stdout.strip()


def read_head(root: Path) -> str:
    """Return the commit that is checked out; nothing if there is none."""
    return run_git(root, "rev-parse", "--verify", "--quiet", "HEAD").stdout.strip()


def mark_as_begun(root: Path) -> None:
    """Say that the files are not whole, if this is the checkout of an owner."""
    if head := read_head(root):
        find_mark(root).write_text(head)


def demand_whole(root: Path) -> None:
    """Forget a merge that was interrupted and is undone.

    Raises:
        ChangeError: it is not undone, as far as can be seen.
    """
    mark = find_mark(root)
    if not mark.is_file():
        return
    if mark.read_text() != read_head(root) or run_git(root, "status", "--porcelain").stdout:
        raise ChangeError(
            "an upgrade was interrupted before your changes were back: git reset --hard, "
            f"git clean -fd, then again; if you did that before, remove {mark}"
        )
    mark.unlink()


def list_open(root: Path) -> list[str]:
    """Return the files with a conflict that is not resolved."""
    return list_files(root, "grep", "--no-color", "--name-only", "-z", "-E", MARKERS)


def add_resolved(root: Path) -> None:
    """Let git know of conflicts that are resolved."""
    unmerged = list_files(root, "diff", "--relative", "--name-only", "-z", "--diff-filter=U")
    if resolved := [*{*unmerged} - {*list_open(root)}]:
        run_git(root, "add", "--all", "--", *resolved)


def merge(root: Path, to: str) -> None:
    """Merge what the release changed with what the owner did, by copier.

    Raises:
        ChangeError: copier refused it.
    """
    uv = [".tools/bin/uv", "tool", "run", "--from", COPIER_PACKAGE]
    copier = ["copier", "update", "--trust", "--defaults", *([f"--vcs-ref={to}"] if to else [])]
    ended = subprocess.run(
        [*uv, *copier],
        cwd=root,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        timeout=STEP_SECONDS_MAX,
    )
    if ended.returncode != 0:
        raise ChangeError(f"copier brought no release, for the reason above; {UNDO}")


def settle_lock(root: Path) -> None:
    """Take the lock of the release where both changed it, as a whole: packages are locked again."""
    if LOCK in list_open(root):
        run_git(root, "checkout", "--theirs", LOCK)
    if LOCK in list_open(root):  # git add -A has forgotten theirs
        run_git(root, "checkout", "HEAD", "--", LOCK)


def list_gone(root: Path) -> list[str]:
    """Return the files that the merge removed although the owner had changed them.

    The owner's are all commits but those that also change the answers, as upgrades do.
    """
    options = ("--relative", "--name-only", "-z", "--no-renames", "--diff-filter=D")
    upgrades = list_commits(root, ANSWERS)
    gone = list_files(root, "diff", "HEAD", *options)
    return [file for file in gone if list_commits(root, file) - upgrades]


def list_commits(root: Path, file: str) -> set[str]:
    return {*run_git(root, "rev-list", "HEAD", "--", file).stdout.split()}


def list_files(root: Path, *command: str) -> list[str]:
    """Return the files that a command of git prints with -z, each once, sorted.

    Raises:
        ChangeError: it failed; with status 1, grep found nothing.
    """
    ended = run_git(root, *command)
    if ended.returncode > 1:
        raise ChangeError(f"git {command[0]} failed ({find_reason(ended.stderr)})")
    return split_paths(ended.stdout)
