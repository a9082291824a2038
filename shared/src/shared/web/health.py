"""Liveness and readiness of a process, the same two endpoints in every process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import asyncpg
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from shared.web.connections import server_config

CHECK_TIMEOUT_SECONDS = 2

Check = Callable[[], Awaitable[str | None]]
"""Returns what is wrong, or None."""


def health_routes(checks: Mapping[str, Check]) -> list[Route]:
    """`/health/live` returns 200 while the process responds, `/health/ready` if all checks pass."""

    async def live(request: Request) -> Response:
        return JSONResponse({"status": "live"})

    async def ready(request: Request) -> Response:
        answers = await asyncio.gather(*(run_check(check) for check in checks.values()))
        wrong = {name: answer for name, answer in zip(checks, answers, strict=True) if answer}
        if not wrong:
            return JSONResponse({"status": "ready"})
        problem = {
            "type": "about:blank",
            "title": "Not ready",
            "status": 503,
            "code": "not-ready",
            "detail": "; ".join(f"{name}: {answer}" for name, answer in wrong.items()),
        }
        return JSONResponse(problem, 503, media_type="application/problem+json")

    return [Route("/health/live", live), Route("/health/ready", ready)]


async def run_check(check: Check) -> str | None:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
            return await check()
    except TimeoutError:
        return f"no response within {CHECK_TIMEOUT_SECONDS} s"
    except Exception as error:  # any error of a check is its result
        return repr(error)


class Server(uvicorn.Server):
    """A server for an event loop that has other work: it leaves signals to the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def health_server(host: str, port: int, checks: Mapping[str, Check]) -> AsyncIterator[None]:
    """Serves health requests of a process that has no other HTTP."""
    app = Starlette(routes=health_routes(checks))
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
