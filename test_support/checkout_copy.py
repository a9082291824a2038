"""A copy of this checkout with packages of its own, for tests of what changes a checkout."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local_stack.settings import CHECKOUT
from local_stack.testing import new_folder, sweep
from scripts.checkout_files import copy_files

COMMAND_SECONDS_MAX = 900


def inherit_variables() -> dict[str, str]:
    """The environment of a copy: nothing of the `make` and the stack that run this test."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MAKE", "HOMETOWN_RUN_DIR", "PYTEST", "VIRTUAL_ENV"))
    }
    return inherited | {"HOMETOWN_PORTS": "free"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A checkout with packages of its own."""

    root: Path

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.root,
            env=inherit_variables() | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
        )

    def printed(self, *command: str, **variables: str) -> str:
        """The output of a command, which must succeed."""
        ended = self.run(*command, **variables)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}"
        return ended.stdout

    def python(self, *arguments: str) -> str:
        return self.printed(".venv/bin/python", *arguments)

    def git(self, *arguments: str) -> str:
        return self.printed("git", "-c", "user.name=test", "-c", "user.email=test", *arguments)


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def copy_checkout(root: Path) -> None:
    """All files that people commit, committed; and the packages, so that `make setup` is quick."""
    copy_files(CHECKOUT, root)
    shutil.copytree(
        CHECKOUT / ".venv",
        root / ".venv",
        symlinks=True,
        copy_function=link_or_copy,
        # Without its stamp, `make setup` installs the copy's own code instead of ours.
        ignore=shutil.ignore_patterns("hometown-setup"),
    )
    for script in (root / ".venv" / "bin").iterdir():
        if not script.is_symlink() and script.read_bytes().startswith(b"#!"):
            point_to(script, root)
    (root / ".tools").symlink_to(CHECKOUT / ".tools")
    if (cache := CHECKOUT / ".mypy_cache").exists():
        shutil.copytree(cache, root / ".mypy_cache")
    Copy(root=root).git("init", "-q")
    Copy(root=root).git("add", "-A")
    Copy(root=root).git("commit", "-q", "-m", "the checkout")


def point_to(script: Path, root: Path) -> None:
    """Make a script run the interpreter of the copy; the file that it is linked with stays."""
    text, mode = script.read_text(), script.stat().st_mode
    script.unlink()
    script.write_text(text.replace(str(CHECKOUT), str(root)))
    script.chmod(mode)


@contextmanager
def copied_checkout() -> Iterator[Copy]:
    """The copy, removed at the end."""
    sweep()
    root = new_folder()
    try:
        copy_checkout(root)
        yield Copy(root=root)
    finally:
        shutil.rmtree(root)
