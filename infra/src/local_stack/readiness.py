"""Waiting for processes by probing them, each with its own deadline."""

import asyncio
import time
from pathlib import Path

import asyncpg
import httpx

from fetching.errors import Failure
from local_stack import supervision
from local_stack.stack_spec import Probe, Process, StackContext
from shared.runtime.logs import to_text

PROBE_SECONDS_MAX = 5
POLL_SECONDS = 0.2


class NotReady(Exception):
    """A process does not answer as it should yet; the message names the last observation."""


PROBE_ERRORS = (
    OSError,
    httpx.HTTPError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    NotReady,
)

STARTS_MAX = 3
"""A process that has begun this often and is still not ready will not be after the next time."""

LOG_LINES_SHOWN = 15
LOG_BYTES_READ = 16_384
PROBLEM_CHARACTERS_MAX = 200


def http_probe(port_name: str, path: str) -> Probe:
    """The process answers 200 on the path."""

    async def probe(context: StackContext) -> None:
        url = f"http://{context.address(port_name)}{path}"
        # It is plain HTTP, and loading the certificate authorities costs more than the answer.
        async with httpx.AsyncClient(
            timeout=PROBE_SECONDS_MAX,
            trust_env=False,
            verify=False,  # noqa: S501
        ) as client:
            answer = await client.get(url)
        if answer.status_code != httpx.codes.OK:
            raise NotReady(f"{path} answers {answer.status_code}: {problem(answer)}")

    return probe


def problem(answer: httpx.Response) -> str:
    """The detail of a problem+json body, else the start of the text."""
    try:
        content = answer.json()
        return str(content.get("detail") or content["title"])
    except (ValueError, AttributeError, LookupError):
        return answer.text[:PROBLEM_CHARACTERS_MAX]


async def obstacle(context: StackContext, process: Process) -> str | None:
    """Why the process is not ready, or None if it is."""
    try:
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            await process.probe(context)
    except TimeoutError:
        return f"no answer within {PROBE_SECONDS_MAX} s"
    except ConnectionError:
        return "no process listens on its port"
    except PROBE_ERRORS as error:
        return str(error) or type(error).__name__
    return None


async def wait_until_ready(
    context: StackContext, process: Process, seconds_max: float, starts_max: int = STARTS_MAX
) -> float:
    """Seconds it took.

    Raises:
        Failure: it keeps ending, it will not start again, or the time is over.
    """
    began = time.monotonic()
    pids_seen: set[int] = set()
    while True:
        program = (supervision.programs(context.folder) or {}).get(process.name)
        if program and program.is_alive:
            pids_seen.add(program.pid)
            seen = await obstacle(context, process)
        else:
            seen = program.error or program.state.lower() if program else "no supervisor runs"
        waited = time.monotonic() - began
        if seen is None:
            return waited
        given_up = program is None or not program.restarts(process) or len(pids_seen) >= starts_max
        if given_up or waited > seconds_max:
            raise not_ready(context, process, waited, seen)
        await asyncio.sleep(POLL_SECONDS)


def not_ready(context: StackContext, process: Process, waited: float, seen: str) -> Failure:
    """The failure, with the end of the log that explains it."""
    log = context.folder.log_of(process.name)
    return Failure(
        f"{process.name} is not ready after {waited:.0f} s ({seen}): see {log}, then `make up`",
        details=[to_text(line, colors=False) for line in last_lines(log, LOG_LINES_SHOWN)],
    )


def last_lines(log: Path, lines: int) -> list[str]:
    """The end of a log; nothing if there is none yet."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_BYTES_READ))
        return file.read().decode(errors="replace").splitlines()[-lines:]
