"""What can act through the page: a form of the page itself, on this machine, and nothing else.

Any site that a developer visits can make their browser send requests to 127.0.0.1. It can neither
read the token of a form, nor hide where its request comes from; and a name of its own that leads to
127.0.0.1 is refused before anything is read.
"""

import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
"""Under these names a developer opens the page."""
OPEN_PREFIXES = ("/health/", "/metrics")
"""What other processes of the stack ask for, under other names."""
SAFE = frozenset({"GET", "HEAD"})
FORM = "application/x-www-form-urlencoded"
FORM_BYTES_MAX = 4096
TOKEN_FIELD = "token"  # noqa: S105 - the name of a field
TOKEN = secrets.token_urlsafe(24)
"""Of this process: each form of its pages contains it."""


class Refused(Exception):
    """The request is not of a form of this page; the text is the reason."""


class Guard:
    """Refuses requests under other names, and those that change something from other sites."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith(OPEN_PREFIXES):
            request = Request(scope)
            try:
                check_host(request)
                if scope["method"] not in SAFE:
                    check_origin(request)
            except Refused as refused:
                response = PlainTextResponse(f"refused: {refused}\n", 403)
                return await response(scope, receive, send)
        return await self.app(scope, receive, send)


def check_host(request: Request) -> None:
    """Raises Refused."""
    if urlsplit(f"//{request.headers.get('host', '')}").hostname not in HOSTS:
        raise Refused("open the console as http://127.0.0.1 or http://localhost")


def check_origin(request: Request) -> None:
    """Raises Refused: a browser names the site that a request comes from in one header or both."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is None and origin is None:
        raise Refused("the request does not name the site that it comes from")
    if site is not None and site != "same-origin":
        raise Refused("the request comes from another site")
    own = request.url
    if origin is not None and urlsplit(origin)[:2] != (own.scheme, own.netloc):
        raise Refused("the request comes from another site")


async def read_form(request: Request) -> Mapping[str, str]:
    """The fields of a form of this page. Raises Refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM:
        raise Refused("it is not a form")
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > FORM_BYTES_MAX:
                raise Refused("the form is too large")
    except ClientDisconnect:
        raise Refused("the form is incomplete") from None
    fields = dict(parse_qsl(body.decode(errors="replace")))
    if not hmac.compare_digest(fields.get(TOKEN_FIELD, "").encode(), TOKEN.encode()):
        raise Refused("the form is not of this page, or of before a restart: reload the page")
    return fields
