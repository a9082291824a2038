"""Waiting for processes by probing them, each with its own deadline."""

import asyncio
import time

import asyncpg
import httpx

from fetching.errors import Failure
from local_stack import supervision
from local_stack.logs import ERROR_CHARACTERS_MAX, find_error, last_lines, log_size, read_lines
from local_stack.progress import Tone, tell
from local_stack.stack_spec import Probe, Process, StackContext

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
        return answer.text[:ERROR_CHARACTERS_MAX]


async def obstacle(context: StackContext, process: Process) -> str | None:
    """Why the process is not ready, or None if it is."""
    try:
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            await process.probe(context)
    except TimeoutError:
        return f"no answer within {PROBE_SECONDS_MAX} s"
    except (ConnectionError, httpx.ConnectError):
        return "no process listens on its port"
    except PROBE_ERRORS as error:
        return str(error) or type(error).__name__
    return None


async def wait_until_ready(
    context: StackContext, process: Process, seconds_max: float, log_begin: int | None = None
) -> float:
    """Seconds it took. The first end of the process is reported at once, with its error.

    `log_begin` is where its log ended before it was started, in bytes; by default, it ends now.

    Raises:
        Failure: it keeps ending, it will not start again, or the time is over.
    """
    began, log = time.monotonic(), context.folder.log_of(process.name)
    begin = log_size(log) if log_begin is None else log_begin
    starts_seen: set[int] = set()
    ended = ""
    while True:
        program = (supervision.programs(context.folder) or {}).get(process.name)
        if program and (program.is_alive or program.has_failed):
            starts_seen.add(program.started_at_seconds)
        if program and program.is_alive:
            seen = await obstacle(context, process)
        else:
            seen = program.error or program.state.lower() if program else "no supervisor runs"
        if program and program.has_failed and not ended:
            ended = find_error(read_lines(log, begin)) or program.error or "it logged nothing"
            tell(f"{process.name:<16} ended: {ended}", Tone.POOR)
        waited = time.monotonic() - began
        if seen is None:
            return waited
        given_up = program is None or not program.restarts(process)
        if given_up or len(starts_seen) >= STARTS_MAX or waited > seconds_max:
            raise not_ready(context, process, waited, ended or seen)
        await asyncio.sleep(POLL_SECONDS)


def not_ready(context: StackContext, process: Process, waited: float, seen: str) -> Failure:
    """The failure, with the end of the log that explains it."""
    log = context.folder.log_of(process.name)
    return Failure(
        f"{process.name} is not ready after {waited:.0f} s ({seen}): see {log}, then `make up`",
        details=last_lines(log, LOG_LINES_SHOWN),
    )
