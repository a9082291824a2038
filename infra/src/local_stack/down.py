"""`down`: stop in the reverse order of reliance, and see that no process is left."""

import time
from collections.abc import Sequence

import psutil

from fetching.errors import Failure
from local_stack import orphans, supervision
from local_stack.progress import Tone, tell
from local_stack.run_folder import RunFolder
from local_stack.stack_spec import Process, StackSpec, Tier

POLL_SECONDS = 0.05
GRACE_SECONDS = 5
"""The supervisor kills at a program's own limit; it needs a moment to notice the end."""

SUPERVISOR_SECONDS_MAX = 20


def down(spec: StackSpec, folder: RunFolder) -> None:
    """Nothing of this stack runs afterwards; harmless when nothing ran before.

    Raises:
        Failure: another verb is at work here, or a process outlived its kill.
    """
    if not folder.path.is_dir():
        return
    with folder.locked():
        if supervision.programs(folder) is not None:
            for stage in stages(spec):
                stop_together(folder, stage)
            end_supervisor(folder)
        if gone := orphans.end(folder):
            tell(f"ended what had outlived its supervisor: {', '.join(gone)}", Tone.POOR)
        if survivors := orphans.find(folder):
            pids = ", ".join(str(process.pid) for process in survivors)
            raise Failure(f"processes {pids} do not end: kill them by hand, then `make down`")


def stages(spec: StackSpec) -> list[Sequence[Process]]:
    """All services at once, then each foundation, the last one to be relied upon first."""
    foundations = [(process,) for process in reversed(spec.of(Tier.FOUNDATION))]
    return [spec.of(Tier.SERVICE), *foundations]


def stop_together(folder: RunFolder, processes: Sequence[Process]) -> None:
    """Stop all of them, and say so."""
    if processes:
        stop_and_wait(folder, processes)
        tell(f"stopped {', '.join(process.name for process in processes)}")


def stop_and_wait(folder: RunFolder, processes: Sequence[Process]) -> None:
    """Ask all of them, and wait; the supervisor kills those that exceed their limit."""
    for process in processes:
        supervision.stop(folder, process.name)
    names = {process.name for process in processes}
    deadline = time.monotonic() + GRACE_SECONDS + max(each.stop_seconds_max for each in processes)
    while time.monotonic() < deadline:
        programs = supervision.programs(folder) or {}
        if all(programs[name].is_at_rest for name in names & programs.keys()):
            break
        time.sleep(POLL_SECONDS)


def end_supervisor(folder: RunFolder) -> None:
    """Ask it to leave, and wait until it has; if it stays, it counts as a leftover."""
    pid = supervision.shut_down(folder)
    deadline = time.monotonic() + SUPERVISOR_SECONDS_MAX
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        supervision.programs(folder)  # a call wakes it; by itself it looks up once a second
        time.sleep(POLL_SECONDS)
