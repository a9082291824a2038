"""Rate, errors and duration of requests, with the names of OpenTelemetry's conventions.

https://opentelemetry.io/docs/specs/semconv/http/http-metrics/#metric-httpserverrequestduration
"""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.runtime import metrics
from shared.web.request_spans import METHODS, OTHER_METHOD, is_probe

DURATION = metrics.Histogram(
    "http.server.request.duration",
    "s",
    "Time from a request to the end of its response",
    ["http.request.method", "http.route", "http.response.status_code"],
)

INTERNAL_ERROR = 500
"""What the server around the application responds to an exception."""
NO_ROUTE = ""
"""Of a path that is none, and of a request that was refused before its route was known."""


class RequestMetrics:
    """Outside of all middleware: a request that is refused counts, too."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_probe(scope["path"]):
            return await self.app(scope, receive, send)
        status = INTERNAL_ERROR

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        began_at = time.perf_counter()
        try:
            await self.app(scope, receive, send_and_note)
        finally:
            method, route = scope["method"], scope.get("route")
            DURATION.record(
                time.perf_counter() - began_at,
                method if method in METHODS else OTHER_METHOD,
                getattr(route, "path_format", NO_ROUTE),
                status,
            )
