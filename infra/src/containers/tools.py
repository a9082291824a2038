"""`run`: a service's own commands, in a container next to the others."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from containers.compose import Project
from fetching.errors import Failure
from local_stack.run_folder import RunFolder
from local_stack.signals import left_on_signals
from shared.runtime.declarations import load_declarations

TOOLS = load_declarations().databases


def run(
    project: Project, service: str, arguments: Sequence[str], without: str | None = None
) -> int:
    """Run a command of a service to its end; its exit status.

    The process `without` is stopped meanwhile, if it runs.

    Raises:
        Failure: nothing runs here, or there is no such service or process.
    """
    if service not in TOOLS:
        raise Failure(f"there is no service {service} here: one of {', '.join(TOOLS)}")
    containers = project.containers()
    if "postgres" not in containers or not containers["postgres"].is_ready:
        raise Failure(f"nothing runs here: `make up {project.way}`, then again")
    words = ("run", "--rm", "--no-TTY", f"{service}-tool", *arguments)
    if without is None:
        return project.call(*words)
    if without not in containers:
        raise Failure(f"there is no process {without} here")
    with RunFolder(project.settings.run_dir).locked(), stopped(project, without):
        return project.call(*words)


@contextmanager
def stopped(project: Project, process: str) -> Iterator[None]:
    """No container of the process runs inside; those that ran before are healthy afterwards."""
    ran = [
        name
        for name, container in project.containers().items()
        if container.service == process and container.state == "running"
    ]
    with left_on_signals():
        try:
            if project.call("stop", process):
                raise Failure(f"{process} cannot be stopped: correct what is printed above")
            yield
        finally:
            if ran:
                project.start(ran)
