"""The process `api` of every service: its authenticator and its HTTP server."""

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
"""How long open requests are served after SIGTERM."""

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Python's default, 700, is about the objects of one request; 50,000 are a few megabytes."""


def create_authenticator(settings: ProcessSettings) -> RequestAuthenticator:
    """The authenticator of an API. Exits with one line if the settings are incomplete."""
    if not settings.auth_issuer or not settings.auth_jwks_url:
        sys.exit(
            "hometown: settings are wrong: AUTH_ISSUER and AUTH_JWKS_URL are required"
            " (see .env.example)"
        )
    keys = SigningKeys(settings.auth_jwks_url)
    return RequestAuthenticator(
        verifier=Verifier(keys, issuer=settings.auth_issuer, audience=settings.auth_audience),
        rates=Rates(settings.http_requests_per_second_max),
    )


def collect_garbage_less_often() -> None:
    """Exclude the objects of the start from garbage collection, and collect less often.

    A request creates some hundred objects and no cycles. Searching for cycles takes a twentieth of
    the time, most of it in modules that stay until the end.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


class Server(uvicorn.Server):
    """uvicorn's server with a hook at the begin of its shutdown, to end endless responses."""

    def __init__(self, config: uvicorn.Config, at_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._at_stop = at_stop

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self._at_stop()
        await super().shutdown(sockets)


def do_nothing() -> None:
    """Most responses end by themselves."""


async def serve_api(
    app: FastAPI, settings: ProcessSettings, at_stop: Callable[[], None] = do_nothing
) -> None:
    """Serve until SIGTERM or SIGINT; open requests are finished."""
    config = server_config(
        app,
        settings.http_host,
        settings.http_port,
        connections_max=settings.http_connections_max,
        grace=GRACE_SECONDS,
    )
    collect_garbage_less_often()
    await Server(config, at_stop).serve()
