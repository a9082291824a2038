"""`replace`: a running process by a new one, as a release or a changed setting requires."""

import asyncio
import time

import httpx

from fetching.errors import Failure
from local_stack import supervision
from local_stack.down import stop_together
from local_stack.progress import Tone, tell
from local_stack.readiness import PROBE_SECONDS_MAX, not_ready
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import Process, StackContext, StackSpec
from local_stack.tools import find_running
from local_stack.up import make_ready, runs

POLL_SECONDS = 0.05


def replace(spec: StackSpec, settings: Settings, name: str) -> None:
    """Replace a process. An API passes its socket on, so that no request to it fails.

    Raises:
        Failure: it does not run here, or its successor is not ready in time.
    """
    process, context = find_running(spec, settings, name)
    with context.folder.locked():
        asyncio.run(renew(context, process))


async def renew(context: StackContext, process: Process) -> None:
    """Replace a process that runs, in place if it can do that; start one that has ended.

    Raises:
        Failure: its successor has ended, or is not ready in time.
    """
    if process.replaced_on is not None and runs(context, process):
        await replace_in_place(context, process, process.replaced_on)
        return
    await asyncio.to_thread(restart, context.folder, process)
    await make_ready(context, process)


def restart(folder: RunFolder, process: Process) -> None:
    """Stop a process and start it; in a thread, as Ctrl-C does not end that in between."""
    stop_together(folder, [process])
    supervision.start(folder, process.name)


async def replace_in_place(context: StackContext, process: Process, signal_name: str) -> None:
    """Let a process replace itself, and wait until it has. Raises Failure."""
    url = f"http://{context.address(process.name)}/health/ready"
    began = time.monotonic()
    # Each call is a connection of its own: a kept one would end with the old process.
    async with httpx.AsyncClient(
        timeout=process.ready_seconds_max, headers={"Connection": "close"}, trust_env=False
    ) as client:
        if (before := await read_start(client, url)) is None:
            await make_ready(context, process)  # before that, it need not know the signal
            before = await read_start(client, url)
        pid = find_pid(context, process)
        supervision.send_signal(context.folder, process.name, signal_name)
        while await read_start(client, url) in (None, before):
            if find_pid(context, process) != pid:  # the successor has the id of the former process
                raise not_ready(context, process, time.monotonic() - began, "it has ended")
            if time.monotonic() > began + process.ready_seconds_max + PROBE_SECONDS_MAX:
                log = context.folder.log_of(process.name)
                raise Failure(f"{process.name} is not replaced yet: see {log}, then `make up`")
            await asyncio.sleep(POLL_SECONDS)
    tell(f"{process.name:<16} replaced after {time.monotonic() - began:.1f} s", Tone.GOOD)


def find_pid(context: StackContext, process: Process) -> int:
    """Return the id of a process, 0 if it does not run."""
    program = (supervision.programs(context.folder) or {}).get(process.name)
    return program.pid if program and program.is_alive else 0


async def read_start(client: httpx.AsyncClient, url: str) -> str | None:
    """When the process was started, None while it is not ready."""
    try:
        answer = await client.get(url)
        return str(answer.json()["started_at"]) if answer.is_success else None
    except (httpx.TransportError, KeyError, ValueError):  # it can be code that is being written
        return None
