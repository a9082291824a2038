"""The process `api` of every service: who is let in, and where it listens."""

import gc
import sys
from collections.abc import Callable
from socket import socket

import uvicorn
from fastapi import FastAPI

from shared.runtime.settings import ProcessSettings
from shared.web.auth import RequestAuthenticator, Verifier
from shared.web.connections import server_config
from shared.web.limits import Rates
from shared.web.signing_keys import SigningKeys

GRACE_SECONDS = 10
"""How long open requests may take when an api is asked to stop."""

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Python's own number, 700, is that of one request; so many are a few megabytes."""


def create_authenticator(settings: ProcessSettings) -> RequestAuthenticator:
    """Who is let in to an API; ends the process with one line when the settings do not say."""
    if not settings.auth_issuer or not settings.auth_jwks_url:
        sys.exit(
            "hometown: settings are wrong: AUTH_ISSUER and AUTH_JWKS_URL must say whose tokens"
            " are accepted (see .env.example)"
        )
    keys = SigningKeys(settings.auth_jwks_url)
    return RequestAuthenticator(
        verifier=Verifier(keys, issuer=settings.auth_issuer, audience=settings.auth_audience),
        rates=Rates(settings.http_requests_per_second_max),
    )


def collect_garbage_seldom() -> None:
    """Leave what was made at the start alone, and look at new objects in larger portions.

    A request makes some hundred objects and no cycles; looking for them takes a twentieth of the
    time, much of it again and again in modules that are never given up.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


class Server(uvicorn.Server):
    """uvicorn's server, which says when it begins to stop: answers without end must end then."""

    def __init__(self, config: uvicorn.Config, at_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._at_stop = at_stop

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self._at_stop()
        await super().shutdown(sockets)


def do_nothing() -> None:
    """Most answers end by themselves."""


async def serve_api(
    app: FastAPI, settings: ProcessSettings, at_stop: Callable[[], None] = do_nothing
) -> None:
    """Serve until SIGTERM or SIGINT; requests in hand are finished."""
    config = server_config(
        app,
        settings.http_host,
        settings.http_port,
        connections_max=settings.http_connections_max,
        grace=GRACE_SECONDS,
    )
    collect_garbage_seldom()
    await Server(config, at_stop).serve()
