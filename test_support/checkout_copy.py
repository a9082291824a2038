"""A copy of this checkout with packages of its own, for tests of what changes a checkout."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fetching.settings import FetchSettings
from local_stack.testing import new_folder, sweep
from scripts.changes import CHECKOUT, copy_files, list_tracked
from scripts.rename import read_name
from test_support.repositories import IDENTITY

ENVIRONMENT = dict(os.environ)
"""Before a test has changed it: a process of the shop forgets what downloads need."""
COMMAND_SECONDS_MAX = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A checkout with packages of its own."""

    root: Path
    is_compiled: bool = False
    """Whether packages are compiled when they are installed: most copies do not run for long."""

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the `make` and the stack that run this test is in it."""
        prefix = read_name(self.root).upper()
        kept = {
            name: value
            for name, value in ENVIRONMENT.items()
            if not name.startswith(("MAKE", "HOMETOWN_RUN_DIR", "PYTEST", "VIRTUAL_ENV"))
        }
        return kept | {
            f"{prefix}_PORTS": "free",
            f"{prefix}_CACHE_DIR": str(FetchSettings().cache_dir),
            "UV_COMPILE_BYTECODE": str(int(self.is_compiled)),
        }

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
        )

    def printed(self, *command: str) -> str:
        """The output of a command, which must succeed."""
        ended = self.run(*command)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}"
        return ended.stdout

    def python(self, *arguments: str) -> str:
        return self.printed(".venv/bin/python", *arguments)

    def demand_current(self) -> None:
        """What is generated, and all that is committed, is as the commands would write it."""
        self.printed("make", "generate", "contracts")
        assert self.git("status", "--porcelain") == ""

    def demo(self) -> None:
        """Count the sample on a stack of the copy, and remove the stack."""
        try:
            assert "confirmed, 16166.64" in self.printed("make", "demo")
        finally:
            self.run("make", "clean")

    def git(self, *arguments: str) -> str:
        return self.printed("git", *IDENTITY, *arguments)

    def commit(self, why: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", why)


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def copy_checkout(root: Path) -> None:
    """Copy what people commit, and commit it; and the packages, so that `make setup` is quick."""
    copy_files(CHECKOUT, list_tracked(CHECKOUT), root)
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
    # .gitignore has the folder, and this is a link.
    (root / ".git/info/exclude").write_text(".tools\n")
    Copy(root=root).commit("the checkout")


def point_to(script: Path, root: Path) -> None:
    """Make a script run the interpreter of the copy; the file that it is linked with stays.

    The line `#!` cannot have a path with a blank: the shell executes it, as where uv installs.
    """
    text, mode = script.read_text(), script.stat().st_mode
    python = str(CHECKOUT / ".venv/bin/python")
    trampoline = f"""#!/bin/sh
'''exec' '{python}' "$0" "$@"
' '''"""
    text = text.replace(f"#!{python}\n", f"{trampoline}\n", 1)
    script.unlink()
    script.write_text(text.replace(str(CHECKOUT), str(root)))
    script.chmod(mode)


@contextmanager
def copied_checkout() -> Iterator[Copy]:
    """Make the copy, and remove it at the end."""
    sweep()
    root = new_folder()
    try:
        copy_checkout(root)
        yield Copy(root=root)
    finally:
        shutil.rmtree(root)
