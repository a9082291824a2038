"""Real connections: requests that are too slow or too large are refused, and closed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from shared.web.connections import HEAD_BYTES_MAX, REFUSALS, TimedConnection, server_config
from shared.web.health import Server
from shared.web.limits import BODY_BYTES_MAX, AnswerTime, BodySize
from test_support.counted import counting
from test_support.waits import HANGS_AFTER_SECONDS

SHORT_SECONDS = 0.3
MUCH_BYTES = 1 << 26
HEAD = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"


class Impatient(TimedConnection):
    head_seconds_max = body_seconds_max = taken_seconds_max = SHORT_SECONDS


def application() -> FastAPI:
    app = FastAPI(telemetry={"tracing": False})

    @app.post("/echo")
    async def echo(request: Request) -> int:
        return len(await request.body())

    @app.get("/things/{name}")
    async def thing(name: str, colour: str | None = None) -> list[str | None]:
        return [name, colour]

    @app.get("/slow")
    async def slow() -> None:
        await asyncio.Event().wait()

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(3):
                yield b"piece"
                await asyncio.sleep(SHORT_SECONDS)

        return StreamingResponse(pieces())

    @app.get("/much")
    async def much() -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(MUCH_BYTES >> 16):
                yield b"x" * (1 << 16)

        return StreamingResponse(pieces())

    app.add_middleware(BodySize)
    app.add_middleware(AnswerTime, seconds_max=SHORT_SECONDS)
    return app


@asynccontextmanager
async def serving(
    protocol: type[asyncio.Protocol] = Impatient, *, connections_max: int = 100
) -> AsyncIterator[int]:
    """The port of the application."""
    config = server_config(application(), "127.0.0.1", 0, connections_max=connections_max)
    config.http = protocol
    server = Server(config)
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        await task


async def answer_to(port: int, *pieces: bytes, pause: float = 0) -> bytes:
    """The response until the server closes; empty if it closes without a response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        await closed(writer)


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serving() as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        yield client


@pytest.mark.parametrize("sent", [[], [b"P"], [HEAD]], ids=["nothing", "a letter", "half a head"])
async def test_a_head_that_does_not_arrive_is_refused(sent: list[bytes]) -> None:
    async with serving() as port:
        answer = await answer_to(port, *sent)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"head-too-slow"' in answer


async def test_a_head_that_is_sent_too_slowly_is_refused() -> None:
    async with serving() as port:
        answer = await answer_to(port, *[b"G"] * 20, pause=SHORT_SECONDS / 5)

    assert answer in {b""} or answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "framing",
    [b"Content-Length: 10\r\n\r\n123", b"Transfer-Encoding: chunked\r\n\r\n3\r\n123\r\n"],
    ids=["declared", "chunked"],
)
async def test_a_body_that_does_not_arrive_is_refused(framing: bytes) -> None:
    async with serving() as port:
        answer = await answer_to(port, HEAD + framing)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"body-too-slow"' in answer


async def test_uvicorn_by_itself_waits_without_limit() -> None:
    """The negative control."""
    async with serving(H11Protocol) as port:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5 * SHORT_SECONDS):
                await answer_to(port, HEAD)


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1),
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % (BODY_BYTES_MAX + 1)
        + b"x" * (BODY_BYTES_MAX + 1),
    ],
    ids=["declared", "chunked"],
)
async def test_a_body_that_is_too_large_is_refused_before_its_end(framing: bytes) -> None:
    async with serving() as port:
        answer = await answer_to(port, HEAD + framing)

    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_the_largest_body_is_accepted() -> None:
    async with client() as http:
        assert (await http.post("/echo", content=b"x" * BODY_BYTES_MAX)).text == "65536"


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"], ids=["without an end", "whole"])
async def test_a_head_that_is_too_large_is_refused(end: bytes) -> None:
    async with serving() as port:
        answer = await answer_to(port, HEAD + b"X: " + b"x" * HEAD_BYTES_MAX + end)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


async def test_a_head_that_is_too_large_in_two_pieces_is_refused() -> None:
    """The second piece completes it: neither of them alone is too large."""
    first, second = HEAD + b"X: " + b"x" * (HEAD_BYTES_MAX - 1_000), b"x" * 2_000 + b"\r\n\r\n"
    async with serving() as port:
        answer = await answer_to(port, first, second, pause=SHORT_SECONDS / 4)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


async def test_one_connection_too_many_is_refused_and_the_others_are_served() -> None:
    async with serving(TimedConnection, connections_max=2) as port:
        open_ones = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        with counting(REFUSALS) as counted:
            refused = await answer_to(port)
        reader, writer = open_ones[0]
        writer.write(HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\n12")
        served = await reader.read()
        for _, each in open_ones:
            await closed(each)

    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"too-many-connections"' in refused
    assert counted == {("too-many-connections",): 1}
    assert served.startswith(b"HTTP/1.1 200 ")


async def test_a_response_that_does_not_begin_is_cancelled_and_a_stream_is_not() -> None:
    async with client() as http:
        slow, stream = await http.get("/slow"), await http.get("/stream")

    assert (slow.status_code, slow.json()["code"]) == (504, "answer-too-slow")
    assert stream.content == b"piece" * 3


async def test_a_client_that_does_not_read_is_disconnected() -> None:
    received = 0
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 10)
        writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(5 * SHORT_SECONDS)
        while piece := await reader.read(1 << 16):
            received += len(piece)
        await closed(writer)

    assert 0 < received < MUCH_BYTES


async def test_a_connection_that_is_used_again_is_not_timed_by_its_first_request() -> None:
    async with client() as http:
        for _ in range(4):
            assert (await http.post("/echo", content=b"1")).text == "1"
            await asyncio.sleep(SHORT_SECONDS / 2)


def test_the_idle_time_is_longer_than_that_of_clients() -> None:
    """Otherwise the server can close it while the client sends a request, which is lost."""
    config = server_config(application(), "127.0.0.1", 0)

    assert config.timeout_keep_alive > (httpx.Limits().keepalive_expiry or 0)


@pytest.mark.parametrize(
    ("target", "status", "content"),
    [
        (b"/things/a?colour=red", 200, b'["a","red"]'),
        (b"http://x/things/a?colour=red", 200, b'["a","red"]'),
        (b"HTTPS://x:80/things/a%20b", 200, b'["a b",null]'),
        (b"http://x", 404, b""),
        (b"http://x?colour=red", 404, b""),
        (b"ftp://x/things/a", 404, b""),
        (b"//x/things/a", 404, b""),
        (b"*", 404, b""),
    ],
)
async def test_a_target_can_name_the_host_as_well(
    target: bytes, status: int, content: bytes
) -> None:
    async with serving() as port:
        request = b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answer = await answer_to(port, request)

    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    assert answer.endswith(content)


async def test_a_request_with_two_lengths_is_refused_and_counts() -> None:
    lengths = b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    async with serving() as port:
        with counting(REFUSALS) as counted:
            answer = await answer_to(port, HEAD + lengths)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert counted == {("malformed-request",): 1}
