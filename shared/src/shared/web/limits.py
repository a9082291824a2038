"""Limits of requests: the size of bodies, the time to a response, the rate of each caller."""

import asyncio
import math
import time
from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.web.problems import HttpProblem, problem

BODY_BYTES_MAX = 64 * 1024
BODY_TOO_LARGE = "body-too-large"
ANSWER_SECONDS_MAX = 60.0
"""Until a response begins: 30 s more than the longest `wait` of an API."""
CALLERS_MAX = 10_000
"""Buckets that are kept; a caller whose bucket was evicted starts with a full one."""
BURST_SECONDS = 2
"""The size of a bucket, in seconds of the rate."""


class Rates:
    """A token bucket for each caller, in the memory of this process only."""

    def __init__(self, per_second_max: float) -> None:
        self._rate = per_second_max
        self._burst = max(per_second_max * BURST_SECONDS, 1.0)
        self._buckets: dict[str, tuple[float, float]] = {}
        """By caller: tokens left, and when; the latest caller is the last entry."""

    def demand(self, caller: str) -> None:
        """Take one token. Raises HttpProblem if the caller has none left."""
        now = time.monotonic()
        left, at = self._buckets.pop(caller, (self._burst, now))
        left = min(left + (now - at) * self._rate, self._burst)
        admitted = left >= 1
        if len(self._buckets) >= CALLERS_MAX:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[caller] = (left - admitted, now)
        if not admitted:
            seconds = math.ceil((1 - left) / self._rate)
            detail = f"rate limit: {self._rate:g} requests per second per caller"
            raise HttpProblem(429, "too-many-requests", detail, {"Retry-After": str(seconds)})


class BodySize:
    """Refuses a body that is too large: by its Content-Length, or while it is received."""

    def __init__(self, app: ASGIApp, bytes_max: int = BODY_BYTES_MAX) -> None:
        self.app = app
        self.bytes_max = bytes_max
        self.detail = f"a request body has at most {bytes_max} bytes"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        declared = get_content_length(scope["headers"])
        if declared is None:
            return await self.app(scope, self._bounded(receive), send)
        if declared > self.bytes_max:
            refusal = problem(413, BODY_TOO_LARGE, self.detail)
            return await refusal(scope, receive, send)
        return await self.app(scope, receive, send)

    def _bounded(self, receive: Receive) -> Receive:
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.bytes_max:
                raise HTTPException(413, self.detail)
            return message

        return receive_bounded


def get_content_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The Content-Length, if any; the parser has checked that it is a number, and reads no more."""
    for name, value in headers:
        if name == b"content-length":
            return int(value)
    return None


class AnswerTime:
    """Cancels a request whose response does not begin in time. A response that has begun has no
    limit here; `connections` limits how long it can stay unread.
    """

    def __init__(self, app: ASGIApp, seconds_max: float = ANSWER_SECONDS_MAX) -> None:
        self.app = app
        self.seconds_max = seconds_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_in_time(message: Message) -> None:
            if message["type"] == "http.response.start":
                limit.reschedule(None)
            await send(message)

        try:
            async with asyncio.timeout(self.seconds_max) as limit:
                await self.app(scope, receive, send_in_time)
        except TimeoutError:
            if not limit.expired():
                raise
            answer = problem(504, "answer-too-slow", "the response did not begin in time; retry")
            await answer(scope, receive, send)
