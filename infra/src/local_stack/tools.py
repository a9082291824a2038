"""`run`: a service's own commands, told where everything is, as the owner of its database."""

import asyncio
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fetching.errors import Failure
from fetching.settings import Settings
from local_stack import supervision
from local_stack.composition import Composition, Process, Site, Tool
from local_stack.down import stop_together
from local_stack.postgres import POSTGRES
from local_stack.status import as_found
from local_stack.up import make_ready, runs


def run(
    composition: Composition,
    settings: Settings,
    name: str,
    arguments: Sequence[str],
    without: str | None = None,
) -> int:
    """Run a tool with these arguments to its end; its exit status.

    The process `without` is stopped meanwhile, if it runs.

    Raises:
        Failure: nothing runs here, there is no such tool or process, or another verb is at work.
    """
    tool = tool_called(composition, name)
    site = as_found(settings)
    if not runs(site, POSTGRES):
        raise Failure("nothing runs here: `make up`, then again")
    if without is None:
        return call(tool, site, arguments)
    process = process_called(composition, without)
    with site.folder.locked(), stopped(site, process):
        return call(tool, site, arguments)


def call(tool: Tool, site: Site, arguments: Sequence[str]) -> int:
    environment = {**supervision.environment(site.folder), **tool.environment(site)}
    return subprocess.run([*tool.command, *arguments], env=environment, check=False).returncode


@contextmanager
def stopped(site: Site, process: Process) -> Iterator[None]:
    """The process does not run inside, and is ready again afterwards if it ran before."""
    ran = runs(site, process)
    stop_together(site.folder, [process])
    try:
        yield
    finally:
        if ran:
            supervision.start(site.folder, process.name)
            asyncio.run(make_ready(site, process))


def tool_called(composition: Composition, name: str) -> Tool:
    tools = {tool.name: tool for tool in composition.tools}
    if name not in tools:
        raise Failure(f"there is no service {name} here: one of {', '.join(tools) or 'none'}")
    return tools[name]


def process_called(composition: Composition, name: str) -> Process:
    processes = {process.name: process for process in composition.processes}
    if name not in processes:
        raise Failure(f"there is no process {name} here: one of {', '.join(processes)}")
    return processes[name]
