"""Repositories of git that tests make: commits have an author on each machine."""

from pathlib import Path

from scripts.changes import run_git

IDENTITY = ("-c", "user.name=test", "-c", "user.email=test")


def git(root: Path, *arguments: str) -> None:
    """Run git in a folder, which must succeed."""
    ended = run_git(root, *IDENTITY, *arguments)
    assert ended.returncode == 0, ended.stderr


def commit_all(root: Path) -> None:
    """Commit all files of a folder that git does not ignore."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "all")
