"""`kill` and `stop`: failures on purpose, to see that the others go on and nothing is lost."""

import asyncio
import time

from fetching.errors import Failure
from local_stack import supervision
from local_stack.logs import log_size
from local_stack.progress import Tone, tell
from local_stack.replacing import find_pid
from local_stack.settings import Settings
from local_stack.stack_spec import Process, StackContext, StackSpec
from local_stack.tools import find_running, stopped
from local_stack.up import make_ready

STOPPED_SECONDS_DEFAULT = 10.0
STOPPED_SECONDS_MAX = 3600.0
RESTART_SECONDS_MAX = 60
"""Until a killed process is started again: the supervisor waits longer after each failed start."""
POLL_SECONDS = 0.05


def kill(spec: StackSpec, settings: Settings, name: str) -> None:
    """Kill a process as `kill -9` does, and wait until the one that replaces it is ready.

    Raises:
        Failure: it does not run here, or is not started again, or not ready in time.
    """
    process, context = find_running(spec, settings, name)
    with context.folder.locked():
        log_begin = log_size(context.folder.log_of(name))
        kill_once(context, process)
        report_killed(name)
        asyncio.run(make_ready(context, process, log_begin))


def kill_once(context: StackContext, process: Process) -> None:
    """Kill a process that runs, and wait until it is started again. Raises Failure."""
    killed, began = find_pid(context, process), time.monotonic()
    supervision.send_signal(context.folder, process.name, "KILL")
    while find_pid(context, process) in (0, killed):
        if time.monotonic() > began + RESTART_SECONDS_MAX:
            raise Failure(f"{process.name} is not started again: `make status` shows why")
        time.sleep(POLL_SECONDS)


def stop(spec: StackSpec, settings: Settings, name: str, seconds: float) -> None:
    """Stop a process for some seconds, then start it and wait until it is ready.

    Raises:
        Failure: it does not run here, or is not ready in time, or cannot be stopped that long.
    """
    demand_seconds(seconds)
    process, context = find_running(spec, settings, name)
    with context.folder.locked(), stopped(context, process):
        report_stopped(name, seconds)
        time.sleep(seconds)


def demand_seconds(seconds: float) -> None:
    """Refuse a time that no process is stopped for. Raises Failure."""
    if not 0 < seconds <= STOPPED_SECONDS_MAX:
        raise Failure(f"seconds={seconds:g}: more than 0, and {STOPPED_SECONDS_MAX:g} at most")


def report_killed(name: str) -> None:
    tell(f"{name:<16} killed", Tone.POOR)


def report_stopped(name: str, seconds: float) -> None:
    tell(f"{name:<16} starts again in {seconds:g} s", Tone.POOR)
