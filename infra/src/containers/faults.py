"""`kill` and `stop` of containers."""

import time

from containers.compose import POLL_SECONDS, Container, Project
from fetching.errors import Failure
from local_stack.faults import RESTART_SECONDS_MAX, demand_seconds, report_killed, report_stopped
from local_stack.progress import Tone, tell
from local_stack.run_folder import RunFolder
from local_stack.signals import left_on_signals

KILL_ALL = "kill -9 -1"
"""Kills all processes of a container but its init, which then ends. After `docker kill`, the engine
would not start the container again: it counts as a requested stop."""

LIFE = "{{.State.StartedAt}} {{.State.Running}}"
"""What changes when a container ends, or is started again."""


def kill(project: Project, name: str) -> None:
    """Kill the processes of a container, and wait until the container is ready again.

    Raises:
        Failure: it does not run here, has no shell, or is not ready in time.
    """
    container = find_running(project, name)
    with RunFolder(project.settings.run_dir).locked():
        kill_processes(project, container)
        began = time.monotonic()
        report_killed(name)
        project.wait_until_ready([name])
        report_ready(name, began)


def kill_processes(project: Project, container: Container) -> None:
    """Kill the processes of a container; returns when it has ended, or was started again.

    Raises:
        Failure: it has no shell, or does not end.
    """
    before, began = read_life(project, container), time.monotonic()
    project.docker("exec", "--detach", container.id, "sh", "-c", KILL_ALL)
    while read_life(project, container) == before:
        if time.monotonic() > began + RESTART_SECONDS_MAX:
            raise Failure(f"{container.process} does not end: `make status {project.way}`")
        time.sleep(POLL_SECONDS)


def read_life(project: Project, container: Container) -> str:
    return project.docker("inspect", "--format", LIFE, container.id)


def stop(project: Project, name: str, seconds: float) -> None:
    """Stop a container for some seconds, then start it and wait until it is ready.

    Raises:
        Failure: it does not run here, or is not ready in time, or cannot be stopped that long.
    """
    demand_seconds(seconds)
    container = find_running(project, name)
    with RunFolder(project.settings.run_dir).locked(), left_on_signals():
        try:
            project.docker("stop", container.id)
            report_stopped(name, seconds)
            time.sleep(seconds)
        finally:
            began = time.monotonic()
            project.start([name])
            report_ready(name, began)


def report_ready(name: str, began: float) -> None:
    tell(f"{name:<16} ready after {time.monotonic() - began:.1f} s", Tone.GOOD)


def find_running(project: Project, name: str) -> Container:
    """Find the container of a process, such as `users-api`, or its second one, `users-api-2`.

    Raises:
        Failure: none of this name runs.
    """
    container = project.containers().get(name)
    if container is None or container.state != "running":
        raise Failure(f"{name} does not run here: `make status {project.way}` shows what does")
    return container
