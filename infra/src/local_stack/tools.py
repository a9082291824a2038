"""`run`: a service's own commands, as the owner of its database; how any verb stops a process."""

import asyncio
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fetching.errors import Failure
from local_stack import supervision
from local_stack.down import stop_together
from local_stack.postgres import POSTGRES
from local_stack.settings import Settings
from local_stack.signals import left_on_signals
from local_stack.stack_spec import Process, StackContext, StackSpec, Tool
from local_stack.status import as_found
from local_stack.up import make_ready, runs


def run(
    spec: StackSpec,
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
    tool = tool_called(spec, name)
    context = as_found(settings)
    if not runs(context, POSTGRES):
        raise Failure("nothing runs here: `make up`, then again")
    if without is None:
        return call(tool, context, arguments)
    process = process_called(spec, without)
    with context.folder.locked(), stopped(context, process):
        return call(tool, context, arguments)


def call(tool: Tool, context: StackContext, arguments: Sequence[str]) -> int:
    environment = {**supervision.environment(context.folder), **tool.environment(context)}
    return subprocess.run([*tool.command, *arguments], env=environment, check=False).returncode


def call_or_fail(spec: StackSpec, context: StackContext, name: str, *arguments: str) -> None:
    """Run a tool to its end. Raises Failure: it failed."""
    if call(tool_called(spec, name), context, arguments) != 0:
        raise Failure(f"{name} {' '.join(arguments)} failed: correct what it reports, then again")


@contextmanager
def stopped(context: StackContext, process: Process) -> Iterator[None]:
    """The process does not run inside, and is ready again afterwards if it ran before."""
    ran = is_kept_running(context, process)
    with left_on_signals():
        try:
            stop_together(context.folder, [process])
            yield
        finally:
            if ran:
                supervision.start(context.folder, process.name)
                asyncio.run(make_ready(context, process))


def find_running(spec: StackSpec, settings: Settings, name: str) -> tuple[Process, StackContext]:
    """Find a process that runs, or will be started again, and the stack that it is a part of.

    Raises:
        Failure: there is no such process, or the stack does not run it.
    """
    process = process_called(spec, name)
    context = as_found(settings)
    if not is_kept_running(context, process):
        raise Failure(f"{name} does not run here: `make status` shows what does")
    return process, context


def is_kept_running(context: StackContext, process: Process) -> bool:
    """Whether it runs, or has failed and will be started again."""
    program = (supervision.programs(context.folder) or {}).get(process.name)
    return program is not None and not program.is_at_rest


def tool_called(spec: StackSpec, name: str) -> Tool:
    tools = {tool.name: tool for tool in spec.tools}
    if name not in tools:
        raise Failure(f"there is no service {name} here: one of {', '.join(tools) or 'none'}")
    return tools[name]


def process_called(spec: StackSpec, name: str) -> Process:
    processes = {process.name: process for process in spec.processes}
    if name not in processes:
        raise Failure(f"there is no process {name} here: one of {', '.join(processes)}")
    return processes[name]
