"""`replace`: the containers of a process by new ones, one after the other; the others serve."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from containers.compose import APIS, POLL_SECONDS, Container, Project
from containers.secrets import PROXY
from fetching.errors import Failure
from local_stack.progress import Tone, tell
from local_stack.run_folder import RunFolder

NOTICE_SECONDS_MAX = 30
"""Until the proxy has noticed a container; a second on a machine that is not busy."""

RUNS_ONCE = "service_completed_successfully"
"""How a process depends on what runs to its end before it."""

ASK_PROXY = """
    exec 3<>/dev/tcp/127.0.0.1/8000
    printf 'GET /usable/{} HTTP/1.0\\r\\n\\r\\n' >&3
    tail -n 1 <&3
"""
"""Prints the number of containers of an API that get requests."""


def replace(project: Project, name: str) -> None:
    """Replace each container of a process by one of the current image and settings.

    The image is built or pulled, and the migration of its service runs, first. A container is
    stopped when the one before it has been replaced, and those that are not ready come first: with
    two of them, a request always has one that serves it. An API with one refuses them meanwhile.

    Raises:
        Failure: the process does not run here, the engine does not answer, or a new container is
            not ready in time; the containers that were not replaced yet go on running.
    """
    folder = RunFolder(project.settings.run_dir)
    folder.demand(project.settings.way)
    with folder.locked():
        old = sorted(find_containers(project, name), key=lambda each: each.is_ready)
        if not old:
            raise Failure(f"{name} does not run here: `make up {project.way}`, then again")
        prepare(project, name)
        refuses = name in APIS and len(old) == 1
        if refuses:
            tell(f"{name:<16} refuses requests until its new container is ready", Tone.POOR)
        for each in old:
            began = time.monotonic()
            replace_one(project, each, len(old))
            outcome = f"replaced after {time.monotonic() - began:.1f} s"
            if refuses:
                outcome += ", in which requests to it were refused"
            tell(f"{each.process:<16} {outcome}", Tone.GOOD)


def find_containers(project: Project, name: str) -> Sequence[Container]:
    """Those of a process, in any state."""
    return [each for each in project.containers().values() if each.service == name]


def prepare(project: Project, name: str) -> None:
    """Build or pull the image of a process, and run the migration that comes with it."""
    declared = project.declared()
    migrations = find_migrations(declared, name)
    needed = (name, *migrations)
    if images := project.settings.images:
        own = [each for each in needed if declared[each]["image"].startswith(f"{images}/")]
        provide = ["pull", *own]
    else:
        own = [each for each in needed if "build" in declared[each]]
        provide = ["build", *own]
    if own and project.call(*provide):
        raise Failure(f"`docker compose {' '.join(provide)}` failed: nothing is replaced")
    for each in migrations:
        if project.call("run", "--rm", "--no-deps", "--no-TTY", each):
            raise Failure(f"{each} failed: nothing is replaced")


def find_migrations(declared: Mapping[str, Any], name: str) -> Sequence[str]:
    """What of the same image runs to its end before a process starts."""
    process = declared[name]
    return [
        each
        for each, how in process.get("depends_on", {}).items()
        if how["condition"] == RUNS_ONCE and declared[each]["image"] == process["image"]
    ]


def replace_one(project: Project, old: Container, number: int) -> None:
    """Replace one of `number` containers of a process."""
    name = old.service
    project.docker("stop", old.id)
    wait_until_noticed(project, name)
    project.docker("rm", "--volumes", old.id)
    kept = {each.id for each in find_containers(project, name)}
    options = ("--no-deps", "--no-recreate", "--no-build", "--scale", f"{name}={number}")
    project.output("up", "--detach", *options, name)
    project.wait_until_ready(
        [each.process for each in find_containers(project, name) if each.id not in kept]
    )
    wait_until_noticed(project, name)


def restart(project: Project, container: Container) -> None:
    """Start a container again; returns when it is ready, and gets requests if it is an API."""
    project.docker("stop", container.id)
    wait_until_noticed(project, container.service)
    project.start([container.process])
    wait_until_noticed(project, container.service)


def wait_until_noticed(project: Project, name: str) -> None:
    """Until the proxy sends requests to all containers of an API that are ready, and to no other.

    Raises:
        Failure: it does not within NOTICE_SECONDS_MAX.
    """
    proxy = project.containers().get(PROXY)
    if name not in APIS or proxy is None:
        return
    deadline = time.monotonic() + NOTICE_SECONDS_MAX
    question = ("exec", proxy.id, "bash", "-c", ASK_PROXY.format(name))
    while True:
        usable = int(project.docker(*question))
        ready = sum(each.is_ready for each in find_containers(project, name))
        if usable == ready:
            return
        if time.monotonic() > deadline:
            raise Failure(f"the proxy sends requests to {usable} of {name}, {ready} are ready")
        time.sleep(POLL_SECONDS)
