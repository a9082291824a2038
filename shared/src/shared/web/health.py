"""Liveness, readiness and metrics: the same three endpoints in every process."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime

import asyncpg
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from shared.runtime import metrics
from shared.runtime.logs import because
from shared.web.connections import server_config
from shared.web.problems import problem

CHECK_TIMEOUT_SECONDS = 2
COLLECT_SECONDS_MIN = 1.0
"""Between two collections of metrics: each takes some milliseconds, and a caller needs no token."""
STOPPING = "the process is stopping"

log = logging.getLogger(__name__)

Check = Callable[[], Awaitable[str | None]]
"""Returns what is wrong, or None."""


def health_routes(checks: Mapping[str, Check], state: State | None = None) -> list[Route]:
    """`/health/live` returns 200 while the process responds, `/health/ready` if all checks pass,
    and `/metrics` what the process has recorded.

    It is not ready any more once `state.is_stopping`.
    """
    started_at = datetime.now(UTC).isoformat()

    async def live(request: Request) -> Response:
        return JSONResponse({"status": "live"})

    async def ready(request: Request) -> Response:
        if getattr(state, "is_stopping", False):
            return not_ready(STOPPING)
        answers = await asyncio.gather(*(run_check(*each) for each in checks.items()))
        wrong = {name: answer for name, answer in zip(checks, answers, strict=True) if answer}
        if not wrong:
            return JSONResponse({"status": "ready", "started_at": started_at})
        return not_ready("; ".join(f"{name}: {answer}" for name, answer in wrong.items()))

    exposed, collect_at = b"", 0.0

    async def expose(request: Request) -> Response:
        nonlocal exposed, collect_at
        if (now := time.monotonic()) >= collect_at:
            exposed, collect_at = metrics.expose(), now + COLLECT_SECONDS_MIN
        return Response(exposed, media_type=metrics.CONTENT_TYPE)

    return [
        Route("/health/live", live),
        Route("/health/ready", ready),
        Route("/metrics", expose),
    ]


def not_ready(detail: str) -> Response:
    return problem(503, "not-ready", detail)


async def run_check(name: str, check: Check) -> str | None:
    """What is wrong, or None. Any caller can read it: the text of an error is only logged."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
            return await check()
    except TimeoutError:
        return f"no response within {CHECK_TIMEOUT_SECONDS} s"
    except Exception as error:  # any error of a check is its result
        log.warning("the health check %s fails", name, extra=because(error))
        return type(error).__name__


class Server(uvicorn.Server):
    """A server for an event loop that has other work: it leaves signals to the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def health_server(
    host: str, port: int, checks: Mapping[str, Check], routes: Sequence[Route] = ()
) -> AsyncIterator[None]:
    """Serves health requests of a process that has no other HTTP but these routes."""
    app = Starlette(routes=[*health_routes(checks), *routes])
    async with served(server_config(app, host, port)):
        yield


@asynccontextmanager
async def served(config: uvicorn.Config) -> AsyncIterator[None]:
    """Serves requests while the process does its other work."""
    server = Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        yield
    finally:
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving


def database_check(pool: asyncpg.Pool) -> Check:
    async def check() -> str | None:
        await pool.fetchval("SELECT 1")
        return None

    return check
