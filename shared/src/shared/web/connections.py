"""Connections to clients, with time limits for what they send and for what they read."""

import asyncio
import re
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from shared.web.limits import get_content_length
from shared.web.problems import problem

HEAD_BYTES_MAX = 16 * 1024
"""Of a request line and its headers. As much can be between two pieces of a body: the sizes of
chunks, and headers after the last one."""
HEAD_ENDS = b"\r\n\r\n"
UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)
VERSIONS = frozenset({"1.0", "1.1"})
WRITE_BYTES_MAX = 64 * 1024
"""Of a response until they are sent."""
CONNECTIONS_MAX = 500
"""The default of the setting."""
IDLE_SECONDS_MAX = 20
"""Between two requests of a connection. More than the idle time of clients and proxies (httpx: 5 s,
as uvicorn by default): the side that closes first can do so while the other one sends."""

HEAD_TOO_SLOW = (408, "head-too-slow", "the head of the request did not arrive in time")
BODY_TOO_SLOW = (408, "body-too-slow", "the body of the request did not arrive in time")
TOO_MANY = (503, "too-many-connections", "there are too many connections; retry")
MALFORMED = (400, "malformed-request", "the request is not HTTP/1.1, or its head is too long")

Refusal = tuple[int, str, str]
"""Status, code and detail of a problem."""


class Malformed(Exception):
    """The parser accepts the request, and we do not."""


class JoinedWrites:
    """What a response writes in one step of its task is sent at once: its head with its body.

    A call of the system for each of them takes a tenth of what a small request costs.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._unsent: list[bytes] = []
        self._bytes = 0

    def write(self, data: bytes) -> None:
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent.append(data)
        self._bytes += len(data)
        if self._bytes > WRITE_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        unsent, self._unsent, self._bytes = self._unsent, [], 0
        if unsent and not self._transport.is_closing():
            self._transport.write(b"".join(unsent))

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self.flush()
        self._transport.close()


class TimedConnection(HttpToolsProtocol):
    """uvicorn's connection with limits: by itself it has none for a head, or the time of a body.

    The parser gets a head when it is complete. It answers one request after another: what arrives
    before the response ends is not read, and the connection is closed after the response. The
    number of connections is limited by uvicorn's `limit_concurrency`.
    """

    head_seconds_max = 10.0
    body_seconds_max = 10.0
    """From the end of the head."""
    taken_seconds_max = 30.0
    """How long a response can stay in our buffers before the client reads it."""

    _head = b""
    """What has arrived of the next head."""
    _begins = False
    """Whether the parser has a head that it has not begun with."""
    _reads_body = False
    _body_bytes_left: int | None = None
    """None while the length is unknown: the body comes in chunks."""
    _unused_bytes = 0
    """Received since the last piece of a body."""
    _writes: JoinedWrites | None = None
    _arrival: asyncio.TimerHandle | None = None
    _awaited: Refusal | None = None
    """The response when the timer of the arrival ends."""
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Beyond the limit, uvicorn would answer requests and keep the connections open.
        connections_max, self.limit_concurrency = self.limit_concurrency, None
        if connections_max is not None and len(self.connections) > connections_max:
            self.refuse(TOO_MANY)
        else:
            self._await(HEAD_TOO_SLOW, self.head_seconds_max)

    @property
    def is_new(self) -> bool:
        """Whether no request has arrived yet."""
        return self.cycle is None

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._reads_body:
            self._read_body(data)
        elif self._is_answering:
            self.cycle.keep_alive = False
        else:
            self._read_head((self._head + data).lstrip(b"\r\n"))
        if self._reads_body and self._unused_bytes > HEAD_BYTES_MAX:
            self.refuse(MALFORMED)
        self._watch_arrival()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _read_body(self, data: bytes) -> None:
        # A request can be answered before its body has arrived, and the next one follow that body.
        end = len(data) if self._is_answering else self._body_bytes_left
        self._unused_bytes += len(data[:end])
        super().data_received(data[:end])
        if end is not None and data[end:] and not self._reads_body:
            self._read_head(data[end:])

    def _read_head(self, data: bytes) -> None:
        end = data.find(HEAD_ENDS, 0, HEAD_BYTES_MAX)
        if end < 0:
            self._head = data
            if len(data) > HEAD_BYTES_MAX:
                self.refuse(MALFORMED)
            return
        self._head, self._begins = b"", True
        self._unused_bytes = len(data) - end
        # Another protocol is never agreed on, and the parser would not find the body.
        super().data_received(UPGRADE.sub(b"", data[:end]) + data[end:])

    def on_message_begin(self) -> None:
        if not self._begins:
            raise Malformed("the request begins before the last one was answered")
        self._begins = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        hosts = sum(name == b"host" for name, _ in self.headers)
        version = self.parser.get_http_version()
        if version not in VERSIONS or hosts > 1 or (hosts == 0 and version != "1.0"):
            raise Malformed("the request has another version, or not one host")
        self._body_bytes_left = get_content_length(self.headers)
        super().on_headers_complete()
        self._writes = JoinedWrites(self.transport, self.loop)
        self.cycle.transport = self._writes  # type: ignore[assignment]
        self._reads_body = True
        self.headers = []  # for those after the body: they are none of the request's

    def on_body(self, body: bytes) -> None:
        self._unused_bytes = 0
        if self._body_bytes_left is not None:
            self._body_bytes_left -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._reads_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._writes is not None:
            self._writes.flush()
        super().on_response_complete()

    def _watch_arrival(self) -> None:
        """The time of a head starts with its first byte, that of a body at the end of the head."""
        if self._reads_body:
            self._await(BODY_TOO_SLOW, self.body_seconds_max)
        elif self._is_answering:
            self._await(None, 0)
        else:
            self._await(HEAD_TOO_SLOW, self.head_seconds_max)

    def _await(self, refusal: Refusal | None, seconds: float) -> None:
        if refusal is self._awaited:
            return
        if self._arrival is not None:
            self._arrival.cancel()
        self._awaited = refusal
        self._arrival = None if refusal is None else self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self._awaited is not None:
            self.refuse(self._awaited)

    def refuse(self, refusal: Refusal) -> None:
        """Respond with a problem unless a response has begun, and close the connection.

        A request that has arrived completely is answered first.
        """
        if self.transport.is_closing():
            return
        if self._writes is not None:
            self._writes.flush()
        if self._is_answering and not self._reads_body:
            self.cycle.keep_alive = False
            return
        if not self._reads_body:
            self._write(refusal)
        elif not self.cycle.response_started:
            self._write(refusal, has_body=self.cycle.scope["method"] != "HEAD")
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _write(self, refusal: Refusal, *, has_body: bool = True) -> None:
        answer = problem(*refusal, headers={"Connection": "close"})
        headers = [b"%b: %b\r\n" % header for header in answer.raw_headers]
        body = bytes(answer.body) if has_body else b""
        self.transport.write(b"".join([STATUS_LINE[refusal[0]], *headers, b"\r\n", body]))

    def send_400_response(self, msg: str) -> None:
        self.refuse(MALFORMED)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self.loop.call_later(self.taken_seconds_max, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._await(None, 0)
        if self._taking is not None:
            self._taking.cancel()
        super().connection_lost(exc)


def server_config(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    connections_max: int = CONNECTIONS_MAX,
    grace: int = 0,
    certificate_file: Path | None = None,
) -> uvicorn.Config:
    """The server of every process that serves HTTP; open requests get `grace` seconds at its stop.

    With a `certificate_file`, which has the private key as well, it serves https (TLS 1.2 or newer)
    and nothing else. No proxy is trusted: a client can send X-Forwarded-* itself.
    """
    return uvicorn.Config(
        app,
        host,
        port,
        http=TimedConnection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections_max,
        timeout_keep_alive=IDLE_SECONDS_MAX,
        timeout_graceful_shutdown=grace or None,
        ssl_certfile=certificate_file,
    )
