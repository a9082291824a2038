"""Tests that share something large stay with one of several test workers; a failure shows logs."""

import subprocess
import sys
from pathlib import Path

import pytest

from local_stack.pytest_plugin import (
    LONGEST,
    SHARED_BY,
    WORKERS_MAX,
    pytest_xdist_auto_num_workers,
)
from local_stack.settings import CHECKOUT

TEST = """
import os, pathlib, time

def test() -> None:
    time.sleep(0.2)
    with open({log!r}, "a") as log:
        log.write(os.environ["PYTEST_XDIST_WORKER"] + " {folder}\\n")
"""

WAITING = """
import shutil
from local_stack.testing import new_folder

def test_waiting(tmp_path, request):
    stack = new_folder()
    request.addfinalizer(lambda: shutil.rmtree(stack))
    (stack / "logs").mkdir()
    (stack / "logs" / "users-worker.log").write_text("no route to the broker\\n")
    (tmp_path / "relay.log").write_text("the lease is lost\\n")
    assert False, "a wait ran out"
"""


def test_a_failure_shows_what_other_processes_have_logged(tmp_path: Path) -> None:
    """Those of a stack that runs, and those that log into the folder of the test."""
    (tmp_path / "test_waiting.py").write_text(WAITING)

    ran = run_tests(tmp_path)

    assert ran.returncode == 1
    assert "Last lines of users-worker.log -" in ran.stdout
    assert "no route to the broker" in ran.stdout
    assert "Last lines of relay.log -" in ran.stdout
    assert "the lease is lost" in ran.stdout


def run_tests(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Pytest with the plugin in a folder of its own."""
    here = ["--rootdir", str(folder), "-c", "/dev/null", "--import-mode=importlib", str(folder)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "local_stack.pytest_plugin", *options, *here],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(("processors", "workers"), [(2, 3), (64, WORKERS_MAX), (None, 2)])
def test_one_worker_more_than_processors_up_to_a_limit(
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
    processors: int | None,
    workers: int,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: processors)

    assert pytest_xdist_auto_num_workers(pytestconfig) == workers


def test_what_takes_longest_exists() -> None:
    """A group that was renamed would come late, and one worker would end long after the others."""
    assert [group for group in LONGEST if not (CHECKOUT / group).exists()] == []


def test_the_tests_of_a_shared_folder_stay_with_one_worker_and_come_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for folder in ("alone", *SHARED_BY):
        (tmp_path / folder).mkdir(parents=True)
        for number in range(4):
            file = tmp_path / folder / f"test_{number}.py"
            file.write_text(TEST.format(log=str(log), folder=folder))

    ran = run_tests(tmp_path, "-n2", "--no-loadscope-reorder", "-qq")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = [(line.split()[0], line.split()[1]) for line in log.read_text().splitlines()]
    for folder in SHARED_BY:
        assert len({worker for worker, where in lines if where == folder}) == 1
    first = dict(reversed(lines))
    assert set(first.values()) == set(SHARED_BY), "each worker begins with one of them"
