"""`up` and `down`: docker compose does the work; people and tests get addresses and keys."""

import time
from collections.abc import Collection

from containers.compose import PROFILES, PUBLISHED, Project
from fetching.errors import Failure
from local_stack import figures, ports
from local_stack.figures import Figure
from local_stack.progress import Tone, tell
from local_stack.run_folder import RunFolder, read_json
from local_stack.settings import Settings
from local_stack.stack_spec import StackContext

UP_SECONDS_MAX = 600
"""Until all is healthy, once the images are there."""


def find_project(settings: Settings) -> Project:
    """The project with the ports that it has, or had."""
    return Project(settings=settings, ports=ports.load(RunFolder(settings.run_dir)))


def up(settings: Settings, asked: Collection[str] = ()) -> StackContext:
    """Build or pull images, start what does not run, and wait until all of it is healthy.

    Raises:
        Failure: something is in the way; what has started is left for inspection.
    """
    if unknown := set(asked) - PROFILES.keys():
        raise Failure(f"{', '.join(sorted(unknown))}: only {', '.join(PROFILES)} can be requested")
    folder = RunFolder(settings.run_dir)
    folder.create()
    with folder.locked():
        folder.claim(settings.way)
        folder.demand_finished()
        find_project(settings).claim(folder)
        project = resolve_project(settings)
        began = time.monotonic()
        profiles = [PROFILES[name] for name in asked]
        patience = ("--wait-timeout", str(UP_SECONDS_MAX))
        # What cannot be pulled is not built: it would be our code under the name of a release.
        build = "--no-build" if settings.images else "--build"
        if project.call("up", build, "--wait", *patience, profiles=profiles):
            missing = f", or an image is not in {settings.images}" if settings.images else ""
            raise Failure(
                f"not everything is healthy{missing}: see above and `make logs {project.way}`"
            )
        seconds = time.monotonic() - began
        context = take_out(project, folder)
    tell(f"all are healthy after {seconds:.1f} s", Tone.GOOD)
    figures.write(folder, "up", [Figure(name="all", value=round(seconds, 3), unit="s")])
    return context


def resolve_project(settings: Settings) -> Project:
    """Decide on the published ports; containers that run keep theirs.

    Raises:
        Failure: a requested port is not available.
    """
    ports.demand_known(settings.ports_given, PUBLISHED)
    before = find_project(settings)
    # Where a proxy is in front of the APIs, only the kept ports name the API of each.
    seen = ports_of(before)
    running = {**before.ports, **seen} if seen else {}
    ports.demand_unchanged(settings.ports_given, running)
    chosen = ports.choose(
        [port for port in PUBLISHED if port.name not in running],
        given=settings.ports_given,
        kept={name: port for name, port in before.ports.items() if name not in running},
        prefer_default=settings.ports == "default",
        tell=lambda text: tell(text, Tone.POOR),
    )
    return Project(settings=settings, ports=running | chosen)


def ports_of(project: Project) -> dict[str, int]:
    """The ports of the containers that run, by their names."""
    names = {port.name for port in PUBLISHED}
    return {
        container.process: container.port
        for container in project.containers().values()
        if container.port is not None and container.process in names
    }


def take_out(project: Project, folder: RunFolder) -> StackContext:
    """Write where everything is, and the secrets of the stack, which its callers need."""
    project.output("cp", "secrets:/secrets/keys/.", str(folder.path))
    context = StackContext(
        settings=project.settings,
        folder=folder,
        ports=project.ports,
        passwords=read_json(folder.secrets) or {},
    )
    ports.save(context, project.published)
    return context


def down(project: Project, *more: str) -> int:
    """Stop and remove the containers; the exit status."""
    return project.call("down", "--remove-orphans", *more)
