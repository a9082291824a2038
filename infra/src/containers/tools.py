"""`run`: a service's own commands, in a container next to the others."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from containers.compose import Project
from fetching.errors import Failure
from local_stack.run_folder import RunFolder
from shared.runtime.declarations import load_declarations

TOOLS = load_declarations().tools


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
    words = ("run", "--rm", "--no-TTY", container_of_tool(service), *arguments)
    if without is None:
        return project.call(*words)
    if without not in containers:
        raise Failure(f"there is no process {without} here")
    with RunFolder(project.settings.run_dir).locked(), stopped(project, without):
        return project.call(*words)


def container_of_tool(name: str) -> str:
    """Where the commands of a service run."""
    service = load_declarations().service(name)
    runs_as = service.tool.runs_as
    return f"{name}-tool" if runs_as is None else service.processes[runs_as].name


def run_topics(project: Project, *, only_check: bool) -> int:
    """Create the topics that are missing, or compare them with the declarations; the exit status.

    Raises:
        Failure: Kafka does not run here.
    """
    containers = project.containers()
    if "kafka" not in containers or not containers["kafka"].is_ready:
        raise Failure(f"kafka does not run here: `make up {project.way}`, then again")
    words = ["--check"] if only_check else []
    return project.call("run", "--rm", "--no-TTY", "--no-deps", "topics", *words)


@contextmanager
def stopped(project: Project, process: str) -> Iterator[None]:
    """No container of the process runs inside; those that ran before are healthy afterwards."""
    ran = [
        name
        for name, container in project.containers().items()
        if container.service == process and container.state == "running"
    ]
    project.call("stop", process)
    try:
        yield
    finally:
        if ran:
            project.start(ran)
