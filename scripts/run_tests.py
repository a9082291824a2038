"""`make test`: runs pytest, and tests that fail once more, each alone, one after another.

A test that passes then does not fail the run: it is listed at the end as unstable, and in
`.run/unstable.jsonl`. A test that fails twice does, and so do more than UNSTABLE_MAX failures. So
does a file that the tests leave in the checkout, unless git ignores it.

python -m scripts.run_tests -n auto -m "not verify"
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local_stack.progress import Tone, tell

UNSTABLE_MAX = 12
"""Failures of a run that are tried again: one that starves a stack for a minute fails several, and
more would take as long again as all tests."""


@dataclass(slots=True)
class Failures:
    """A plugin of pytest that remembers which tests failed, with the first line of each error."""

    root: Path = field(default_factory=Path.cwd)
    errors: dict[str, str] = field(default_factory=dict)

    def pytest_configure(self, config: pytest.Config) -> None:
        self.root = config.rootpath

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.errors.setdefault(report.nodeid, get_first_line(report))


def main(arguments: Sequence[str]) -> int:
    """Run the tests that pytest's arguments select; returns its exit status."""
    before = find_unknown_files()
    status = run(arguments)
    if left := find_unknown_files() - before:
        tell(f"the tests left in the checkout: {', '.join(sorted(left))}", Tone.BAD)
        return status or int(pytest.ExitCode.TESTS_FAILED)
    return status


def find_unknown_files() -> set[str]:
    """Files that git neither has nor ignores; none where there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True
    )
    return set(listed.stdout.splitlines())


def run(arguments: Sequence[str]) -> int:
    """The tests, and once more those that fail."""
    failures = Failures()
    status = int(pytest.main([*arguments], plugins=[failures]))
    if status != pytest.ExitCode.TESTS_FAILED or not failures.errors:
        return status
    if len(failures.errors) > UNSTABLE_MAX:
        tell(f"{len(failures.errors)} tests failed, more than {UNSTABLE_MAX}: none is run again")
        return status
    unstable = {
        test: error for test, error in failures.errors.items() if passes_alone(test, failures.root)
    }
    record(unstable, failures.root / ".run" / "unstable.jsonl")
    report(unstable, failed=failures.errors.keys() - unstable.keys())
    return 0 if len(unstable) == len(failures.errors) else status


def get_first_line(report: pytest.TestReport) -> str:
    """What went wrong, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else report.longreprtext
    return next(iter(text.splitlines()), "")


def passes_alone(test: str, root: Path) -> bool:
    tell(f"\nonce more, alone: {test}")
    return subprocess.run([sys.executable, "-m", "pytest", test], cwd=root).returncode == 0


def record(unstable: dict[str, str], path: Path) -> None:
    """Append a line of JSON for each test."""
    if unstable:
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            for test, error in unstable.items():
                row = {"at": datetime.now(UTC).isoformat(), "test": test, "error": error}
                file.write(json.dumps(row) + "\n")


def report(unstable: dict[str, str], *, failed: set[str]) -> None:
    """List at the end what a reader of the log looks for first."""
    for test in sorted(failed):
        tell(f"failed twice: {test}", Tone.BAD)
    tell(f"unstable: {len(unstable)}", Tone.POOR)
    for test, error in unstable.items():
        tell(f"  {test}\n    {error}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
