"""Tests that share something large stay with one of several test workers."""

import subprocess
import sys
from pathlib import Path

from local_stack.pytest_plugin import LONGEST, SHARED_BY
from local_stack.settings import CHECKOUT

TEST = """
import os, pathlib, time

def test() -> None:
    time.sleep(0.2)
    with open({log!r}, "a") as log:
        log.write(os.environ["PYTEST_XDIST_WORKER"] + " {folder}\\n")
"""


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
    options = ["-p", "local_stack.pytest_plugin", "-n2", "--no-loadscope-reorder", "-qq"]
    here = ["--rootdir", str(tmp_path), "-c", "/dev/null", "--import-mode=importlib", str(tmp_path)]

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *here], capture_output=True, text=True
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = [(line.split()[0], line.split()[1]) for line in log.read_text().splitlines()]
    for folder in SHARED_BY:
        assert len({worker for worker, where in lines if where == folder}) == 1
    first = dict(reversed(lines))
    assert set(first.values()) == set(SHARED_BY), "each worker begins with one of them"
