"""`run`: a service's own commands, as the owner of its database."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from fetching.errors import Failure
from local_stack import supervision
from local_stack.down import stop_together
from local_stack.postgres import POSTGRES
from local_stack.settings import Settings
from local_stack.stack_spec import Process, StackContext, StackSpec, Tool
from local_stack.status import as_found
from local_stack.up import make_ready, runs

LEFT_ON = (signal.SIGHUP, signal.SIGTERM)
EXITED_BY_SIGNAL = 128
"""The exit status of a program that a signal ended is higher by that, as in a shell."""


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
    ran = runs(context, process)
    try:
        with left_on_signals():
            stop_together(context.folder, [process])
            yield
    finally:
        if ran:
            supervision.start(context.folder, process.name)
            asyncio.run(make_ready(context, process))


@contextmanager
def left_on_signals() -> Iterator[None]:
    """A closed terminal, or a request to end, leaves the block as Ctrl-C does."""

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(EXITED_BY_SIGNAL + number)

    before = {number: signal.getsignal(number) for number in LEFT_ON}
    for number in LEFT_ON:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, leave)
    try:
        yield
    finally:
        for number in LEFT_ON:
            signal.signal(number, before[number])


def find_running(spec: StackSpec, settings: Settings, name: str) -> tuple[Process, StackContext]:
    """Find a process that runs, and the stack that it is a part of. Raises Failure."""
    process = process_called(spec, name)
    context = as_found(settings)
    if not runs(context, process):
        raise Failure(f"{name} does not run here: `make status` shows what does")
    return process, context


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
