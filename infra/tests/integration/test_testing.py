"""Stacks of killed test runs are removed by a later run."""

import os
import tempfile
from pathlib import Path

import psutil
import pytest

from local_stack import orphans, testing
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import StackSpec
from local_stack.up import up

PID_OF_NOBODY = 2**22
"""The kernel assigns only smaller ones."""


def test_the_stack_of_a_killed_test_run_is_swept(
    web_only: StackSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Others that sweep meanwhile would remove the stack while it starts.
    monkeypatch.setattr(testing, "FOLDER_PREFIX", f"hometown-swept-{os.getpid()}-")
    abandoned = Path(tempfile.gettempdir(), f"{testing.FOLDER_PREFIX}{PID_OF_NOBODY}-{os.getpid()}")
    assert not psutil.pid_exists(PID_OF_NOBODY)
    up(web_only, Settings(run_dir=abandoned, ports="free", ports_given={}))
    assert orphans.find(RunFolder(abandoned))
    testing.sweep()
    assert orphans.find(RunFolder(abandoned)) == []
    assert not abandoned.exists()
