"""`replace`: a running process by a new one, as a release or a changed setting requires."""

import asyncio
import time

import httpx

from fetching.errors import Failure
from local_stack import supervision
from local_stack.down import stop_together
from local_stack.progress import Tone, tell
from local_stack.readiness import PROBE_SECONDS_MAX
from local_stack.settings import Settings
from local_stack.stack_spec import Process, StackContext, StackSpec
from local_stack.status import as_found
from local_stack.tools import process_called
from local_stack.up import make_ready, runs

POLL_SECONDS = 0.05


def replace(spec: StackSpec, settings: Settings, name: str) -> None:
    """Replace a process. An API passes its socket on, so that no request to it fails.

    Raises:
        Failure: it does not run here, or its successor is not ready in time.
    """
    process = process_called(spec, name)
    context = as_found(settings)
    if not runs(context, process):
        raise Failure(f"{name} does not run here: `make up`, then again")
    with context.folder.locked():
        if process.replaced_on is None:
            stop_together(context.folder, [process])
            supervision.start(context.folder, name)
            asyncio.run(make_ready(context, process))
        else:
            asyncio.run(replace_in_place(context, process, process.replaced_on))


async def replace_in_place(context: StackContext, process: Process, signal_name: str) -> None:
    """Let a process replace itself, and wait until it has."""
    url = f"http://{context.address(process.name)}/health/ready"
    began = time.monotonic()
    # Each call is a connection of its own: a kept one would end with the old process.
    async with httpx.AsyncClient(
        timeout=process.ready_seconds_max, headers={"Connection": "close"}, trust_env=False
    ) as client:
        if (before := await read_start(client, url)) is None:
            await make_ready(context, process)  # before that, it need not know the signal
            before = await read_start(client, url)
        supervision.send_signal(context.folder, process.name, signal_name)
        while await read_start(client, url) in (None, before):
            if time.monotonic() > began + process.ready_seconds_max + PROBE_SECONDS_MAX:
                log = context.folder.log_of(process.name)
                raise Failure(f"{process.name} is not replaced yet: see {log}, then `make up`")
            await asyncio.sleep(POLL_SECONDS)
    tell(f"{process.name:<16} replaced after {time.monotonic() - began:.1f} s", Tone.GOOD)


async def read_start(client: httpx.AsyncClient, url: str) -> str | None:
    """When the process was started, None while it is not ready."""
    try:
        answer = await client.get(url)
        return str(answer.json()["started_at"]) if answer.is_success else None
    except httpx.TransportError:
        return None
