"""Change a checkout by files and commands: all of it, or nothing."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

CHECKOUT = Path(__file__).resolve().parents[1]
LOCK = "uv.lock"
PYTHON = ".venv/bin/python"
STEP_SECONDS_MAX = 1800
"""For a step that can wait for a package registry."""
GIT_SECONDS_MAX = 60

BYTECODE = "__pycache__"
VISIBLE = frozenset({".ci", ".devcontainer", ".github", ".vscode"})
"""Folders with a dot that people commit; no step writes into others, such as .git and .venv."""

ERRORS = ("error: ", "fatal: ")
"""How uv and git begin the line; hints follow."""

SIZE = re.compile(r", size = [0-9]+")

Report = Callable[[str], None]
Step = tuple[str, Sequence[str]]
"""What is done, and the command that does it."""


class ChangeError(Exception):
    """The message is one line: what is in the way, and what to do."""


def run_command(change: Callable[[], int], interrupted: str = "nothing was changed") -> int:
    """Return the exit status of a change; 1 with a line on standard error if it was refused."""
    try:
        return change()
    except (ChangeError, OSError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"hometown: {error}\n")
    except KeyboardInterrupt:
        sys.stderr.write(f"hometown: interrupted; {interrupted}\n")
    return 1


def report(line: str) -> None:
    """Print a line of progress at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def lock_packages(title: str) -> Step:
    """Lock with the versions that are known, and ask the registry only if that is not enough.

    Asked again, not every registry says that nothing changed: then Spark is downloaded and built.
    The Python is that of the checkout, where the one of `.python-version` need not be installed.
    """
    lock = f".tools/bin/uv lock --python {PYTHON}"
    return title, ["sh", "-c", f"{lock} --offline --quiet 2>/dev/null || {lock}"]


def install_packages(title: str) -> Step:
    return title, ["make", "--no-print-directory", "setup"]


def renew_generated(contracts: str) -> list[Step]:
    """Return the steps that write the contracts, and what `make generate` writes."""
    return [
        (contracts, [PYTHON, "-m", "contracts", "write"]),
        ("generating what follows from it", ["make", "--no-print-directory", "generate"]),
    ]


def format_code(*paths: str) -> list[Step]:
    """Return the steps after changes of Python files, or of those in folders."""
    ruff = [PYTHON, "-m", "ruff"]
    return [
        (
            "ordering imports, without those that nothing uses any more",
            [*ruff, "check", "-q", "--select=F401,I", "--fix", *paths],
        ),
        ("formatting", [*ruff, "format", "-q", *paths]),
    ]


def check_types(folder: str) -> Step:
    """Return the step that checks the types of a service; its last line is an error."""
    return "checking types", [PYTHON, "-m", "mypy", "--no-error-summary", folder]


def renew_all() -> list[Step]:
    """Return the steps after changes of code, of names and of dependencies, in any file."""
    return [
        lock_packages("locking the packages"),
        install_packages("installing them"),
        *format_code("."),
        *renew_generated("writing the contracts"),
    ]


def run_steps(root: Path, steps: Sequence[Step], report: Report) -> None:
    """Run commands in the checkout `root`, one after the other.

    Raises:
        ChangeError: a command failed; those after it did not run.
    """
    had_sizes = SIZE.search((root / LOCK).read_text())
    for title, command in steps:
        report(title)
        run_step(root, title, command)
        if not had_sizes:
            remove_sizes(root / LOCK)


def run_step(root: Path, title: str, command: Sequence[str]) -> None:
    """Raises ChangeError with the line of what the command printed that says why."""
    try:
        ended = run_captured(root, command)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ChangeError(f"{title} failed ({error}); nothing was changed") from error
    if ended.returncode != 0:
        reason = find_reason(ended.stdout)
        raise ChangeError(
            f"{title} failed ({reason}); nothing was changed: correct that, then again"
        )


def run_captured(root: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command that may wait for a package registry; errors are in its standard output."""
    return subprocess.run(
        command,
        cwd=root,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=STEP_SECONDS_MAX,
    )


def find_reason(printed: str) -> str:
    """Return the line that says why a program failed: the first error, or the last line."""
    lines = printed.strip().splitlines() or ["no output"]
    errors = [line.partition(": ")[2] for line in lines if line.startswith(ERRORS)]
    return errors[0] if errors else lines[-1]


def clean_environment() -> dict[str, str]:
    """The environment without what would make the steps a part of a running `make`."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MAKE") and name != "VIRTUAL_ENV"
    }


def run_git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, timeout=GIT_SECONDS_MAX
    )


def list_tracked(root: Path) -> list[str]:
    """Return the files that git has or would have, sorted, relative to `root`.

    Raises:
        ChangeError: `root` is no checkout of git.
    """
    ended = run_git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if ended.returncode != 0:
        raise ChangeError(
            "this is no checkout of git: git init, git add -A, git commit, then again"
        )
    return [file for file in split_paths(ended.stdout) if is_file(root / file)]


def split_paths(printed: str) -> list[str]:
    """Return the paths that git printed with -z, each once, sorted."""
    return sorted({*filter(None, printed.split("\0"))})


def read_texts(root: Path, files: Iterable[str]) -> dict[str, str]:
    """Return the texts of those files that have one, by their paths; links have none."""
    texts: dict[str, str] = {}
    for file in files:
        if not (root / file).is_symlink():
            with suppress(UnicodeDecodeError):
                texts[file] = (root / file).read_text()
    return texts


def copy_files(root: Path, files: Iterable[str], folder: Path) -> None:
    """Copy files and links to the same paths in the folder, over those that are there."""
    for file in files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        shutil.copy2(root / file, path, follow_symlinks=False)


def demand_committed(root: Path) -> None:
    """
    Raises:
        ChangeError: a file has changes that git could not bring back, or this is no checkout.
    """
    ended = run_git(root, "status", "--porcelain", "--untracked-files=all")
    if ended.returncode != 0:
        raise ChangeError(f"git status failed ({find_reason(ended.stderr)}): correct that first")
    if ended.stdout.strip():
        raise ChangeError("there are uncommitted changes: git commit or git stash them first")


def is_file(path: Path) -> bool:
    """Whether it is a file or a symbolic link, also to nothing."""
    return path.is_file() or path.is_symlink()


@contextmanager
def unchanged_if_it_fails(root: Path, others: Iterable[str] = ()) -> Iterator[None]:
    """After an error inside, all files of the checkout are as before.

    These are those that a step can write, and `others`, by their paths in the checkout, also of
    files that are not there yet.
    """
    named = [root / name for name in others]
    before = {path: Content.read(path) for path in {*list_files(root), *named} if is_file(path)}
    try:
        yield
    except BaseException:
        for path in {*list_files(root), *named}:
            if path not in before and is_file(path):
                path.unlink()
                remove_empty(path.parent)
        for path, content in before.items():
            content.write(path)
        raise


@dataclass(frozen=True, slots=True)
class Content:
    """What a file is: bytes with rights, or the target of a symbolic link."""

    content: bytes | str
    mode: int

    @classmethod
    def read(cls, path: Path) -> Self:
        content = os.readlink(path) if path.is_symlink() else path.read_bytes()
        return cls(content, path.lstat().st_mode)

    def write(self, path: Path) -> None:
        """Write it unless the file has it."""
        if os.path.lexists(path):
            if Content.read(path) == self:
                return
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(self.content, str):
            path.symlink_to(self.content)
        else:
            path.write_bytes(self.content)
            path.chmod(self.mode)


def remove_empty(folder: Path) -> None:
    """Remove the folder and its parents, up to the first that holds anything but bytecode."""
    while folder.exists():
        shutil.rmtree(folder / BYTECODE, ignore_errors=True)
        if any(folder.iterdir()):
            return
        folder.rmdir()
        folder = folder.parent


def list_files(root: Path) -> list[Path]:
    """All files that a step can write and people commit."""
    found = []
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if is_committed(name)]
        found += [Path(folder, file) for file in files if not Path(folder, file).is_symlink()]
    return found


def is_committed(folder: str) -> bool:
    return folder != BYTECODE and (not folder.startswith(".") or folder in VISIBLE)


def remove_sizes(lock: Path) -> None:
    """Not every registry gives them, so that a lock without them stays without."""
    text = lock.read_text()
    if (shorter := SIZE.sub("", text)) != text:
        lock.write_text(shorter)
