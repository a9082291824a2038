"""`make test` runs failed tests once more: an unstable one passes, a broken one does not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.run_tests import UNSTABLE_MAX
from test_support.waits import HANGS_AFTER_SECONDS

UNSTABLE = """
import pathlib

def test_unstable_{number}():
    tried = pathlib.Path(__file__).with_suffix(".tried")
    is_first = not tried.exists()
    tried.touch()
    assert not is_first, "the first time"
"""
GOOD = "def test_good(): pass\n"
BROKEN = "def test_broken(): assert False, 'each time'\n"
WITHOUT_FIXTURE = "def test_without_fixture(missing): pass\n"


def run(root: Path, *tests: str, workers: int = 0) -> "subprocess.CompletedProcess[str]":
    """The runner in a project with these tests."""
    (root / "pytest.ini").write_text("[pytest]\n")
    for number, content in enumerate(tests):
        (root / f"test_{number}.py").write_text(content.replace("{number}", str(number)))
    return subprocess.run(
        [sys.executable, "-m", "scripts.run_tests", "-n", str(workers)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )


def recorded(root: Path) -> list[dict[str, str]]:
    path = root / ".run" / "unstable.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_test_that_passes_alone_is_unstable_and_fails_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, UNSTABLE, GOOD, workers=2)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    last = ended.stdout.splitlines()[-3:]
    assert last[0] == "unstable: 1"
    assert last[1].strip() == "test_0.py::test_unstable_0"
    assert "the first time" in last[2]
    [row] = recorded(tmp_path)
    assert row["test"] == "test_0.py::test_unstable_0"
    assert "the first time" in row["error"]


@pytest.mark.parametrize("broken", [BROKEN, WITHOUT_FIXTURE])
def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path, broken: str) -> None:
    """The negative control of the second try."""
    ended = run(tmp_path, UNSTABLE, broken)

    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert "failed twice: test_1.py::test_" in ended.stdout
    assert len(recorded(tmp_path)) == 1


def test_more_failures_than_can_be_by_chance_fail_the_run_at_once(tmp_path: Path) -> None:
    ended = run(tmp_path, *[UNSTABLE] * (UNSTABLE_MAX + 1))

    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert "none is run again" in ended.stdout
    assert recorded(tmp_path) == []


def test_a_file_that_cannot_be_read_fails_the_run(tmp_path: Path) -> None:
    assert run(tmp_path, GOOD, "import missing_module\n").returncode != 0


def test_without_a_failure_nothing_is_added(tmp_path: Path) -> None:
    ended = run(tmp_path, GOOD)

    assert ended.returncode == 0
    assert "unstable" not in ended.stdout


LEAVES_A_FILE = """
import pathlib

def test_that_leaves_a_file(): pathlib.Path(__file__).with_name("NAME").touch()
"""


@pytest.mark.parametrize(("name", "status"), [("left.txt", 1), ("left.ignored", 0)])
def test_a_file_that_is_left_in_the_checkout_fails_the_run(
    tmp_path: Path, name: str, status: int
) -> None:
    (tmp_path / ".gitignore").write_text("*.ignored\n__pycache__\n.pytest_cache\n")
    (tmp_path / "mine.txt").touch()
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)

    ended = run(tmp_path, LEAVES_A_FILE.replace("NAME", name))

    assert ended.returncode == status, ended.stdout
    assert ("left in the checkout: left.txt" in ended.stdout) == (status == 1)
