"""Connections to clients, with time limits for what they send and for what they read."""

import asyncio
import contextlib
import re
from pathlib import Path
from urllib.parse import unquote

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from shared.runtime import metrics
from shared.web.problems import problem

HEAD_BYTES_MAX = 16 * 1024
"""Of a request line and its headers."""
HEAD_ENDS = b"\r\n\r\n"
CONNECTIONS_MAX = 500
"""The default of the setting."""
IDLE_SECONDS_MAX = 20
"""Between two requests of a connection. More than the idle time of clients and proxies (httpx: 5 s,
as uvicorn by default): the side that closes first can do so while the other one sends."""

HEAD_TOO_SLOW = (408, "head-too-slow", "the head of the request did not arrive in time")
BODY_TOO_SLOW = (408, "body-too-slow", "the body of the request did not arrive in time")
TOO_MANY = (503, "too-many-connections", "there are too many connections; retry")
MALFORMED = (400, "malformed-request", "the request is not HTTP/1.1, or its head is too long")
TWO_LENGTHS = (400, "malformed-request", "Content-Length and Transfer-Encoding exclude each other")

ABSOLUTE_FORM = re.compile(rb"https?://[^/]*(/.*)?", re.IGNORECASE)

Refusal = tuple[int, str, str]
"""Status, code and detail of a problem."""

REFUSALS = metrics.Counter(
    "hometown.connection.refusals",
    "{connection}",
    "Connections that were closed because of what they sent, or because there were too many",
    ["code"],
)
for each in (HEAD_TOO_SLOW, BODY_TOO_SLOW, TOO_MANY, MALFORMED):
    REFUSALS.add(0, each[1])


class TimedConnection(H11Protocol):
    """uvicorn's connection with time limits: by itself it waits for a head or a body without limit.

    The number of connections is limited by uvicorn's `limit_concurrency`.
    """

    head_seconds_max = 10.0
    body_seconds_max = 10.0
    """From the end of the head."""
    taken_seconds_max = 30.0
    """How long a response can stay in our buffers before the client reads it."""

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
        # h11 limits what it buffers, and accepts a longer head if the next piece completes it.
        if self.conn.their_state is h11.IDLE:
            head = self.conn.trailing_data[0] + data
            if len(head) > HEAD_BYTES_MAX and head.find(HEAD_ENDS, 0, HEAD_BYTES_MAX) < 0:
                return self.refuse(MALFORMED)
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        self._watch_arrival()

    def _watch_arrival(self) -> None:
        """The time of a head starts with its first byte, that of a body at the end of the head."""
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            self._await(BODY_TOO_SLOW, self.body_seconds_max)
        elif state is h11.IDLE and self.conn.trailing_data[0]:
            self._await(HEAD_TOO_SLOW, self.head_seconds_max)
        else:
            self._await(None, 0)

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
        """Respond with a problem unless a response has begun, and close the connection."""
        if self.transport.is_closing():
            return
        REFUSALS.add(1, refusal[1])
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            answer = problem(*refusal, headers={"Connection": "close"})
            head = h11.Response(status_code=answer.status_code, headers=answer.raw_headers)
            with contextlib.suppress(h11.LocalProtocolError):  # a response to HEAD has no body
                for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

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


class OneLength:
    """Refuses a request with two lengths, against request smuggling; h11 accepts it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            names = {name for name, _ in scope["headers"]}
            if b"transfer-encoding" in names and b"content-length" in names:
                REFUSALS.add(1, TWO_LENGTHS[1])
                refusal = problem(*TWO_LENGTHS, headers={"Connection": "close"})
                return await refusal(scope, receive, send)
        return await self.app(scope, receive, send)


class OriginForm:
    """Leaves the path of a target that names scheme and host, too, as a proxy is sent it.

    A server must accept that form (RFC 9112, section 3.2.2), and a router knows only paths.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (found := ABSOLUTE_FORM.fullmatch(scope["raw_path"])):
            raw_path = found[1] or b"/"
            scope.update(raw_path=raw_path, path=unquote(raw_path.decode("ascii")))
        return await self.app(scope, receive, send)


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
        OneLength(OriginForm(app)),
        host,
        port,
        http=TimedConnection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections_max,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        timeout_keep_alive=IDLE_SECONDS_MAX,
        timeout_graceful_shutdown=grace or None,
        ssl_certfile=certificate_file,
    )
