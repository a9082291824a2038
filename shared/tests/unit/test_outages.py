"""An unavailable database is a 503 that can be retried, and one log line however many ask."""

from collections.abc import Awaitable, Callable

import asyncpg
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from shared.web import http, outages
from shared.web.auth import RequestAuthenticator
from test_support.written_log import written_log

CLOSED_PORT = 1


async def connect_to_nobody() -> None:
    await asyncpg.connect(host="127.0.0.1", port=CLOSED_PORT)


def fail_with(error: Exception) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        raise error

    return fail


def client_of(
    authenticator: RequestAuthenticator, work: Callable[[], Awaitable[None]]
) -> httpx.AsyncClient:
    """A client of an application whose only route does this work."""

    async def serve(request: Request) -> Response:
        await work()
        return Response()

    app = http.create_app(
        "test",
        [],
        resources=None,
        authenticator=authenticator,
        open_routes=[Route("/work", serve)],
        open_paths={"/work"},
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


@pytest.mark.parametrize(
    "work",
    [
        connect_to_nobody,
        fail_with(TimeoutError()),
        fail_with(asyncpg.InterfaceError("pool is closing")),
        fail_with(asyncpg.ConnectionDoesNotExistError("connection was closed")),
        fail_with(asyncpg.AdminShutdownError("terminating connection")),
        fail_with(asyncpg.CannotConnectNowError("the database system is starting up")),
        fail_with(asyncpg.TooManyConnectionsError("sorry, too many clients already")),
        fail_with(asyncpg.DiskFullError("no space left on device")),
        fail_with(asyncpg.PostgresIOError("could not read block")),
        fail_with(asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT")),
        fail_with(asyncpg.InvalidPasswordError("password authentication failed")),
        fail_with(asyncpg.InvalidCatalogNameError("database does not exist")),
    ],
)
async def test_an_unavailable_database_is_a_503_with_retry_after(
    authenticator: RequestAuthenticator, work: Callable[[], Awaitable[None]]
) -> None:
    async with client_of(authenticator, work) as client:
        answer = await client.get("/work")

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0


async def test_an_error_of_a_statement_is_still_a_bug(authenticator: RequestAuthenticator) -> None:
    work = fail_with(asyncpg.UndefinedTableError("no such table"))
    async with client_of(authenticator, work) as client:
        answer = await client.get("/work")

    assert (answer.status_code, answer.json()["code"]) == (500, "internal-error")


async def test_an_outage_is_one_log_line_a_minute_without_a_stack_trace(
    authenticator: RequestAuthenticator,
) -> None:
    with written_log() as written:
        async with client_of(authenticator, connect_to_nobody) as client:
            for _ in range(10):
                await client.get("/work")

    [line] = [line for line in written.lines if line["level"] == "error"]
    assert line["logger"] == outages.__name__
    assert line["cause"] == "ConnectionRefusedError"
    assert "exception" not in line
