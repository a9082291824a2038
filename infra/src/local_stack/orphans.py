"""Processes of a stack without a supervisor: found by their mark, ended by their ids.

They are not adopted: their output goes into pipes of the supervisor that is gone, so that what
they log would be lost from then on.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil

from local_stack.run_folder import RunFolder
from local_stack.supervision import MARK

TERMINATE_SECONDS_MAX = 20
KILL_SECONDS_MAX = 10


def find(folder: RunFolder) -> list[psutil.Process]:
    """All processes that carry the mark of this run folder, without this one and its callers."""
    own = {process.pid for process in (psutil.Process(), *psutil.Process().parents())}
    return [
        process
        for process in psutil.process_iter()
        if process.pid not in own and belongs(process, folder)
    ]


def belongs(process: psutil.Process, folder: RunFolder) -> bool:
    """PostgreSQL's workers write their titles over their environment, so their folder must do."""
    with contextlib.suppress(psutil.Error, OSError):
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if process.environ().get(MARK) == str(folder.path):
            return True
        return process.name() == "postgres" and Path(process.cwd()) == folder / "postgres" / "data"
    return False


def program_of(process: psutil.Process) -> str:
    """The name under which the supervisor started it; empty if it has none."""
    with contextlib.suppress(psutil.Error, OSError):
        return process.environ().get("SUPERVISOR_PROCESS_NAME", "")
    return ""


def end(folder: RunFolder) -> list[str]:
    """End them, politely first, and wait until they are gone; return `name (pid)` of each.

    A stack whose supervisor was killed still serves, so its processes get the same chance to
    finish what they hold as in `down`. PostgreSQL's workers follow their postmaster.
    """
    found = find(folder)
    described = [text for process in found for text in description(process)]
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    psutil.wait_procs(found, timeout=TERMINATE_SECONDS_MAX)
    stubborn = find(folder)
    for process in stubborn:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stubborn, timeout=KILL_SECONDS_MAX)
    return described


def description(process: psutil.Process) -> Iterator[str]:
    """Nothing if it has ended meanwhile."""
    with contextlib.suppress(psutil.Error):
        yield f"{process.name()} ({process.pid})"
