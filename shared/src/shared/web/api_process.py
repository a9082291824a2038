"""The process `api` of every service: its authenticator and its HTTP server."""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from signal import SIGHUP
from socket import socket

import uvicorn
from fastapi import FastAPI
from uvicorn.server import HANDLED_SIGNALS

from shared.runtime import processes
from shared.runtime.listening import listen
from shared.runtime.settings import ProcessSettings
from shared.web.auth import RequestAuthenticator, Verifier
from shared.web.connections import TimedConnection, server_config
from shared.web.limits import Rates
from shared.web.signing_keys import SigningKeys

DRAIN_SECONDS_MAX = 2.0
"""How long connections are accepted after a signal to stop. Each response asks the client to close
its connection; those that are idle all the time are closed at the end."""
FIRST_REQUEST_SECONDS_MAX = 1.0
"""How long a connection that was accepted last can take to send its request."""
GRACE_SECONDS = 10
"""How long open requests are served after that."""
POLL_SECONDS = 0.02
CLOSE = (b"connection", b"close")

log = logging.getLogger(__name__)


def create_authenticator(settings: ProcessSettings) -> RequestAuthenticator:
    """The authenticator of an API. Exits with one line if the settings are incomplete."""
    if not settings.auth_issuer or not settings.auth_jwks_url:
        sys.exit(
            "hometown: settings are wrong: AUTH_ISSUER and AUTH_JWKS_URL are required"
            " (see .env.example)"
        )
    keys = SigningKeys(settings.auth_jwks_url, settings.http_ca_file)
    return RequestAuthenticator(
        verifier=Verifier(keys, issuer=settings.auth_issuer, audience=settings.auth_audience),
        rates=Rates(settings.http_requests_per_second_max),
    )


class Server(uvicorn.Server):
    """uvicorn's server, which drains its connections before it stops, or before it is replaced.

    `at_stop` is called first: it ends endless responses, and those that wait for something.
    `listening` stays open only if it is passed on: what it queues otherwise would be reset.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        app: FastAPI,
        listening: socket,
        at_stop: Callable[[], None],
        drain_seconds_min: float,
    ) -> None:
        super().__init__(config)
        self._app = app
        self._listening = listening
        self._at_stop = at_stop
        self._drain_seconds_min = drain_seconds_min
        self.is_replaced = False

    def replace(self) -> None:
        """Stop; the socket is passed on."""
        self.should_exit = self.is_replaced = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would raise the signal again after it has served, which ends the process before
        its resources are closed and its last spans are sent."""
        loop = asyncio.get_running_loop()
        for number in HANDLED_SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self._app.state.is_stopping = True
        self._at_stop()
        # Clients close their connections themselves: one that the server closes can have a request
        # under way, which would fail.
        self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]
        await self._until(lambda: False, 0 if self.is_replaced else self._drain_seconds_min)
        await self._until(lambda: not self.server_state.connections, DRAIN_SECONDS_MAX)
        for server in self.servers:
            server.close()
        if not self.is_replaced:
            self._listening.close()
        await self._until(lambda: not self._has_new_connections(), FIRST_REQUEST_SECONDS_MAX)
        await super().shutdown(sockets)

    def _has_new_connections(self) -> bool:
        """Whether a connection that was accepted has not sent a request yet."""
        return any(
            isinstance(each, TimedConnection) and each.is_new
            for each in self.server_state.connections
        )

    async def _until(self, is_done: Callable[[], bool], seconds_max: float) -> None:
        deadline = time.monotonic() + seconds_max
        while True:
            if is_done() or self.force_exit or time.monotonic() >= deadline:
                return
            await asyncio.sleep(POLL_SECONDS)


def do_nothing() -> None:
    """Most responses end by themselves."""


async def serve_api(
    app: FastAPI, settings: ProcessSettings, at_stop: Callable[[], None] = do_nothing
) -> None:
    """Serve until SIGTERM or SIGINT; open requests are finished.

    After SIGHUP, the process executes its command again at its end: new connections wait meanwhile,
    and none is refused.
    """
    config = server_config(
        app,
        settings.http_host,
        settings.http_port,
        connections_max=settings.http_connections_max,
        grace=GRACE_SECONDS,
        certificate_file=settings.http_certificate_file,
    )
    try:
        listening = listen(settings.http_host, settings.http_port)
    except OSError as error:
        sys.exit(f"hometown: cannot listen on port {settings.http_port}: {error.strerror}")
    log.info("listening on http://%s:%d", settings.http_host, settings.http_port)
    processes.collect_garbage_less_often()
    server = Server(config, app, listening, at_stop, settings.http_drain_seconds_min)
    asyncio.get_running_loop().add_signal_handler(SIGHUP, server.replace)
    processes.release_signal(SIGHUP)
    await server.serve(sockets=[listening.dup()])
    if server.is_replaced:
        processes.hold_signal(SIGHUP)
        processes.replace_at_end(listening)
