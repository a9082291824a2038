"""Real connections: requests that are too slow or too large are refused, and closed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar
from unittest.mock import Mock

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shared.web.connections import HEAD_BYTES_MAX, TimedConnection, server_config
from shared.web.health import Server
from shared.web.limits import BODY_BYTES_MAX, AnswerTime, BodySize

SHORT_SECONDS = 0.3
ANSWER_SECONDS = 180
MUCH_BYTES = 1 << 26
HEAD = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"


class Impatient(TimedConnection):
    head_seconds_max = body_seconds_max = taken_seconds_max = SHORT_SECONDS


class Counted(Impatient):
    """Counts what is sent at once."""

    writes: ClassVar[int] = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        write = transport.write

        def counting(data: bytes) -> None:
            type(self).writes += 1
            write(data)

        self.transport = Mock(wraps=transport, write=counting)


def application() -> FastAPI:
    app = FastAPI(telemetry={"tracing": False})

    @app.post("/echo")
    async def echo(request: Request) -> int:
        return len(await request.body())

    @app.post("/headers")
    async def headers(request: Request) -> list[str]:
        await request.body()
        return sorted(request.headers)

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

    @app.get("/late")
    async def late() -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            await asyncio.Event().wait()
            yield b""

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
        async with asyncio.timeout(ANSWER_SECONDS):
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
    async with serving(HttpToolsProtocol) as port:
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


LENGTH = b"Content-Length: 2\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LAST_CHUNK = b"0\r\n"
CLOSE = b"Connection: close\r\n"
UPGRADE = b"Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        HEAD + LENGTH + CHUNKED + b"\r\n0\r\n\r\n",
        HEAD + CHUNKED + LENGTH + b"\r\n0\r\n\r\n",
        HEAD + LENGTH + b"Content-Length: 3\r\n\r\n12",
        HEAD + b"Host: y\r\n" + LENGTH + b"\r\n12",
        HEAD.replace(b"Host: x\r\n", b"") + LENGTH + b"\r\n12",
        HEAD.replace(b"HTTP/1.1", b"HTTP/2.0") + LENGTH + b"\r\n12",
        HEAD + CHUNKED + b"\r\nzz\r\n",
    ],
    ids=[
        "a length and chunks",
        "chunks and a length",
        "two lengths",
        "two hosts",
        "no host",
        "HTTP/2",
        "a chunk without a size",
    ],
)
async def test_a_malformed_request_is_refused(request_: bytes) -> None:
    async with serving() as port:
        answer = await answer_to(port, request_)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"malformed-request"' in answer


@pytest.mark.parametrize("pause", [0, SHORT_SECONDS / 4], ids=["at once", "later"])
async def test_what_follows_a_request_before_its_response_is_not_read(pause: float) -> None:
    first = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serving() as port:
        answer = await answer_to(port, first, HEAD + LENGTH + b"\r\n12", pause=pause)
        together = await answer_to(port, first + HEAD + LENGTH + b"\r\n12")

    assert answer.startswith(b"HTTP/1.1 504 ")
    assert answer.count(b"HTTP/1.1 ") == together.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("cut", [0, 1, 2], ids=["whole body", "half a body", "no body"])
async def test_a_request_that_follows_the_body_of_one_that_was_answered_early_is_read(
    cut: int,
) -> None:
    """A client can have the response before it sends a body, which nothing reads."""
    first = HEAD.replace(b"/echo", b"/nowhere") + LENGTH + b"\r\n12"
    begin, rest = first[: len(first) - 2 + cut], first[len(first) - 2 + cut :]
    async with serving() as port:
        answer = await answer_to(port, begin, rest + HEAD + CLOSE + LENGTH + b"\r\n12", pause=0.1)

    assert answer.startswith(b"HTTP/1.1 404 ")
    assert answer.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 200 " in answer


async def test_the_body_of_a_request_to_upgrade_is_its_body() -> None:
    """Java's client asks for HTTP/2 like this by default."""
    request = HEAD.replace(b"/echo", b"/headers") + UPGRADE + LENGTH + b"\r\n1"
    async with serving() as port:
        answer = await answer_to(port, request, b"2")

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"upgrade"' not in answer


async def test_uvicorn_by_itself_takes_the_body_of_a_request_to_upgrade_for_another_request() -> (
    None
):
    """The negative control: it answers before the body, which is read as a request."""
    async with serving(HttpToolsProtocol) as port:
        answer = await answer_to(
            port, HEAD + UPGRADE.replace(b", close", b"") + LENGTH + b"\r\n1", b"2", pause=0.1
        )

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b"HTTP/1.1 ") == 2


async def test_a_header_after_the_body_is_none_of_the_request() -> None:
    request = HEAD.replace(b"/echo", b"/headers") + CLOSE + CHUNKED + b"\r\n" + LAST_CHUNK
    async with serving() as port:
        answer = await answer_to(port, request + b"Authorization: x\r\n\r\n")

    assert answer.endswith(b'["connection","content-type","host","transfer-encoding"]')


async def test_headers_after_the_body_that_are_too_large_are_refused() -> None:
    line = b"X: " + b"x" * 1_000 + b"\r\n"
    async with serving() as port:
        answer = await answer_to(port, HEAD + CHUNKED + b"\r\n" + LAST_CHUNK, *[line] * 17)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


async def test_blank_lines_do_not_keep_a_connection_open() -> None:
    async with serving() as port:
        answer = await answer_to(port, *[b"\r\n\r\n"] * 3, pause=SHORT_SECONDS / 4)

    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_blank_lines_before_a_request_are_ignored() -> None:
    async with serving() as port:
        answer = await answer_to(port, b"\r\n\r\n" + HEAD + CLOSE + LENGTH + b"\r\n12")

    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_the_refusal_of_a_request_for_the_head_has_no_body() -> None:
    request = HEAD.replace(b"POST", b"HEAD").replace(b"/echo", b"/slow") + LENGTH
    async with serving() as port:
        answer = await answer_to(port, request + b"\r\n1")

    assert answer.endswith(b"\r\n\r\n")


async def test_one_connection_too_many_is_refused_and_the_others_are_served() -> None:
    async with serving(TimedConnection, connections_max=2) as port:
        open_ones = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        refused = await answer_to(port)
        reader, writer = open_ones[0]
        writer.write(HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\n12")
        served = await reader.read()
        for _, each in open_ones:
            await closed(each)

    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"too-many-connections"' in refused
    assert served.startswith(b"HTTP/1.1 200 ")


async def test_a_response_that_does_not_begin_is_cancelled_and_a_stream_is_not() -> None:
    async with client() as http:
        slow, stream = await http.get("/slow"), await http.get("/stream")

    assert (slow.status_code, slow.json()["code"]) == (504, "answer-too-slow")
    assert stream.content == b"piece" * 3


async def test_a_response_is_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "writes", 0)
    async with serving(Counted) as port:
        answer = await answer_to(port, HEAD + CLOSE + LENGTH + b"\r\n12")

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"2")
    assert Counted.writes == 1


async def test_the_head_of_a_stream_is_sent_before_its_first_piece() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_SECONDS)
        await closed(writer)

    assert head.startswith(b"HTTP/1.1 200 ")


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
