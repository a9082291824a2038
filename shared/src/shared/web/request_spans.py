"""A span for each request, with the names of OpenTelemetry's conventions for HTTP servers.

https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server-span

Our own because FastAPI's costs a request that is not recorded as much as one that is (ADR 26).
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.runtime import telemetry

METRICS, HEALTH = "/metrics", "/health/"
"""A path, and the prefix of others, that are requested every few seconds."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
"""A client can send any method; span names contain only these."""
OTHER_METHOD = "_OTHER"
OTHER_METHOD_NAME = "HTTP"

SECRET_IN_QUERY = re.compile(rb"(token|key|secret|password|auth|jwt)[^=&]*=", re.IGNORECASE)
"""No API has a secret in the query, but a client can send one."""


class RequestSpans:
    """The outermost middleware: a request that is refused has a span, too."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_probe(scope["path"]):
            return await self.app(scope, receive, send)
        span = telemetry.tracer.start_span(
            get_span_name(scope["method"]), extract_parent(scope), SpanKind.SERVER
        )
        token = context.attach(trace.set_span_in_context(span))
        try:
            if span.is_recording():
                await self._record(span, scope, receive, send)
            else:
                await self.app(scope, receive, send)
        finally:
            context.detach(token)
            span.end()

    async def _record(self, span: Span, scope: Scope, receive: Receive, send: Send) -> None:
        span.set_attributes(get_request_attributes(scope))
        try:
            await self.app(scope, receive, record_status(span, send))
        except Exception as error:
            # The server around it responds with 500, and logs it.
            fail(span, 500, type(error).__qualname__)
            raise
        finally:
            route = getattr(scope.get("route"), "path_format", None)
            if route is not None:
                span.set_attribute("http.route", route)
                span.update_name(f"{get_span_name(scope['method'])} {route}")


def is_probe(path: str) -> bool:
    """Whether a request has no span, and does not count."""
    return path == METRICS or path.startswith(HEALTH)


def get_span_name(method: str) -> str:
    return method if method in METHODS else OTHER_METHOD_NAME


def extract_parent(scope: Scope) -> Context:
    """The trace context in the headers of a request: none if it names two parents.

    As https://www.w3.org/TR/trace-context-2/#considerations-for-traceparent-header-field demands.
    """
    parents = [value for name, value in scope["headers"] if name == b"traceparent"]
    states = [value for name, value in scope["headers"] if name == b"tracestate"]
    if len(parents) != 1:
        return telemetry.extract({})
    return telemetry.extract(
        {
            telemetry.TRACEPARENT: parents[0].decode("latin-1"),
            telemetry.TRACESTATE: b",".join(states).decode("latin-1"),
        }
    )


def get_request_attributes(scope: Scope) -> Mapping[str, str | int]:
    """The attributes that are known before the response."""
    method, query = scope["method"], scope["query_string"]
    host, port = scope.get("server") or ("", 0)
    attributes = {
        "http.request.method": method if method in METHODS else OTHER_METHOD,
        "url.scheme": scope["scheme"],
        "url.path": scope["path"],
        "network.protocol.version": scope["http_version"],
        "server.address": host,
        "server.port": port,
    }
    if query:
        hidden = contains_secret(query)
        attributes["url.query"] = "REDACTED" if hidden else query.decode("latin-1")
    return attributes


def contains_secret(query: bytes) -> bool:
    return SECRET_IN_QUERY.search(unquote_to_bytes(query)) is not None


def record_status(span: Span, send: Send) -> Send:
    async def send_and_record(message: Message) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            if status >= 500:
                fail(span, status, str(status))
            else:
                span.set_attribute("http.response.status_code", status)
        await send(message)

    return send_and_record


def fail(span: Span, status: int, error_type: str) -> None:
    """Errors are those of the server; a 4xx is none."""
    span.set_attribute("http.response.status_code", status)
    telemetry.fail(span, error_type)
