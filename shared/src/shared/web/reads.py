"""Reads, the same for every route: HEAD is GET without its content; conditions are evaluated."""

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.web.preconditions import (
    NO_PRECONDITIONS,
    UNTAGGED,
    VERSION_CONFLICT,
    Preconditions,
    read_preconditions,
)
from shared.web.problems import HttpProblem, problem, to_problem_response

OF_CONTENT = ("content-length", "content-type")
"""Headers that describe content; a 304 has none."""


class Reads:
    """Answers HEAD by the route of GET, and conditional reads without content that is not wanted.

    A condition is evaluated on the response which the request would get without it, so that no
    route has to know it (RFC 9110, sections 9.3.2 and 13.2).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
            return await self.app(scope, receive, send)
        reply = Reply(scope, receive, send)
        try:
            reply.preconditions = read_preconditions(scope["headers"])
        except HttpProblem as error:
            return await to_problem_response(error)(scope, receive, reply)
        if scope["method"] == "GET" and reply.preconditions is NO_PRECONDITIONS:
            return await self.app(scope, receive, send)
        get = {**scope, "method": "GET"}
        try:
            await self.app(get, receive, reply)
        finally:
            scope["route"] = get.get("route")  # for the span


class Reply:
    """Sends the response to a read, or another one in its place."""

    preconditions: Preconditions = NO_PRECONDITIONS

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._is_over = False

    async def __call__(self, message: Message) -> None:
        if self._is_over:
            return
        if message["type"] == "http.response.start" and message["status"] == 200:
            other = self._find_other(MutableHeaders(raw=list(message["headers"])))
            if other is not None:
                await other(self._scope, self._receive, self)
                self._is_over = True
                return
        await self._send(message)
        if message["type"] == "http.response.start" and self._scope["method"] == "HEAD":
            self._is_over = True
            await self._send({"type": "http.response.body"})

    def _find_other(self, headers: MutableHeaders) -> Response | None:
        """The response that is sent instead of one with these headers, if any."""
        tag = headers.get("etag", UNTAGGED)
        if not self.preconditions.is_matched(tag):
            return problem(412, VERSION_CONFLICT, f"the current entity tag is {tag or 'none'}")
        if self.preconditions.is_unmatched(tag):
            return None
        for name in OF_CONTENT:
            del headers[name]
        unchanged = Response(status_code=304)
        unchanged.raw_headers = headers.raw
        return unchanged
