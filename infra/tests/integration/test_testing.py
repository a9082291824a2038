"""Stacks of tests and campaigns: removed also after a kill, and quiet unless something fails."""

import os
import tempfile
from pathlib import Path

import psutil
import pytest

from local_stack import orphans, testing
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import StackSpec
from local_stack.testing import throwaway_stack
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


def test_only_an_error_shows_what_was_logged(
    web_only: StackSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    logged = "what a process has logged"

    def run_web(divisor: int) -> None:
        with throwaway_stack(web_only) as context:
            context.folder.log_of(web_only.processes[0].name).write_text(logged)
            assert 1 / divisor

    run_web(1)
    assert logged not in capsys.readouterr().out

    with pytest.raises(ZeroDivisionError):
        run_web(0)
    assert logged in capsys.readouterr().out
