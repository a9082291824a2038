"""`status`: what the engine reports of each process now."""

from containers.compose import Container, Project
from local_stack.hometown import HOMETOWN
from local_stack.stack_spec import HOST
from local_stack.status import Status

STATES = {"healthy": "ready", "": "ready", "starting": "starting"}
"""What the health of a container that runs means; anything else is not ready."""


def status(project: Project) -> list[Status]:
    """Every process of the stack, also one whose container has died or is gone."""
    containers, servers = project.containers(), project.servers()
    usual = [process.name for process in HOMETOWN.processes if process.name in servers]
    more = [name for name in servers if name not in usual]
    return [
        describe(name, containers.get(name), on_request=not servers[name])
        for name in (*usual, *more)
    ]


def describe(name: str, container: Container | None, *, on_request: bool = False) -> Status:
    if container is None:
        reason = "on request" if on_request else ""
        return Status(name=name, state="stopped", required=not on_request, reason=reason)
    runs = container.state == "running"
    state = STATES.get(container.health, "not ready") if runs else "dead"
    return Status(
        name=name,
        state=state,
        required=not on_request,
        reason="" if runs else f"ended with status {container.exit_status}: `make logs`",
        address="" if container.port is None else f"{HOST}:{container.port}",
    )
