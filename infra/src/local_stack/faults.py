"""`kill` and `stop`: what goes wrong in an operator's life, on purpose, to see it heal."""

import asyncio
import time

from fetching.errors import Failure
from local_stack import supervision
from local_stack.progress import Tone, tell
from local_stack.settings import Settings
from local_stack.stack_spec import StackSpec
from local_stack.tools import find_running, stopped
from local_stack.up import make_ready

STOPPED_SECONDS_MAX = 3_600
RESTART_SECONDS_MAX = 60
"""Until the supervisor has started another process: it waits longer after each failed start."""
POLL_SECONDS = 0.05


def kill(spec: StackSpec, settings: Settings, name: str) -> None:
    """End a process as `kill -9` does, and wait until its successor is ready.

    Raises:
        Failure: it does not run here, or no successor is ready in time.
    """
    process, context = find_running(spec, settings, name)
    with context.folder.locked():
        killed = (supervision.programs(context.folder) or {})[name].pid
        supervision.kill(context.folder, name)
        tell(f"{name:<16} killed, process {killed}", Tone.POOR)
        deadline = time.monotonic() + RESTART_SECONDS_MAX
        while (supervision.programs(context.folder) or {})[name].pid in (0, killed):
            if time.monotonic() > deadline:
                raise Failure(f"{name} is not started again: `make status` shows why")
            time.sleep(POLL_SECONDS)
        asyncio.run(make_ready(context, process))


def stop(spec: StackSpec, settings: Settings, name: str, seconds: float) -> None:
    """Stop a process for some seconds, and start it again.

    Raises:
        Failure: it does not run here, the time is too long, or it is not ready in time.
    """
    demand_seconds(seconds)
    process, context = find_running(spec, settings, name)
    with context.folder.locked(), stopped(context, process):
        time.sleep(seconds)


def demand_seconds(seconds: float) -> None:
    """Raises Failure."""
    if not 0 < seconds <= STOPPED_SECONDS_MAX:
        raise Failure(f"a process is stopped for {STOPPED_SECONDS_MAX:,} s at most, not {seconds}")
