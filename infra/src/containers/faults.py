"""`kill` and `stop` in containers."""

import time

from containers.compose import Project
from fetching.errors import Failure
from local_stack.faults import POLL_SECONDS, RESTART_SECONDS_MAX, demand_seconds
from local_stack.progress import Tone, tell

KILL = "kill -9 -1"
"""Kills all processes in a container but its init, which then ends. `docker kill` would count as a
requested stop, so that the container would not be restarted."""


def kill(project: Project, name: str) -> None:
    """End the process in a container, and wait until the container is ready again.

    Raises:
        Failure: there is no such container, or it is not ready in time.
    """
    demand_running(project, name)
    began = time.monotonic()
    started_at = read_start(project, name)
    project.call("exec", "--no-TTY", name, "bash", "-c", KILL)
    tell(f"{name:<16} killed", Tone.POOR)
    while read_start(project, name) == started_at:
        if time.monotonic() > began + RESTART_SECONDS_MAX:
            raise Failure(f"{name} is not started again: `make status {project.way}` shows why")
        time.sleep(POLL_SECONDS)
    project.wait_until_ready([name])
    tell(f"{name:<16} ready after {time.monotonic() - began:.1f} s", Tone.GOOD)


def stop(project: Project, name: str, seconds: float) -> None:
    """Stop a container for some seconds, and start it again.

    Raises:
        Failure: there is no such container, the time is too long, or it is not ready in time.
    """
    demand_seconds(seconds)
    demand_running(project, name)
    project.output("stop", name)
    tell(f"stopped {name}")
    try:
        time.sleep(seconds)
    finally:
        began = time.monotonic()
        project.start([name])
    tell(f"{name:<16} ready after {time.monotonic() - began:.1f} s", Tone.GOOD)


def read_start(project: Project, name: str) -> str:
    """When the container was started last."""
    container = project.containers()[name]
    return project.docker("inspect", "--format", "{{.State.StartedAt}}", container.id)


def demand_running(project: Project, name: str) -> None:
    """Raises Failure."""
    container = project.containers().get(name)
    if container is None or container.state != "running":
        raise Failure(f"{name} does not run here: `make up {project.way}`, then again")
