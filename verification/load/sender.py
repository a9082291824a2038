"""Retries a call with one Idempotency-Key until it is answered: processes can die meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus

import aiohttp

from test_support.system.clients import Hometown, Json
from verification.load.calls import Call
from verification.load.ids import Unanswered

CONNECTIONS_MAX = 64
"""To all processes together. A call that finds none free waits, which counts as latency."""
ATTEMPT_SECONDS_MAX = 20
"""For one response, from the moment at which there is a connection."""
RETRY_SECONDS_MAX = 90
"""A killed process restarts much sooner; a call that waits longer counts as unanswered."""
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.1, 1.6

AGAIN = frozenset({"request-in-progress", "version-conflict"})
"""Temporary refusals: nothing was recorded, or the same request is being recorded."""
OVERLOADED = "overloaded"
"""The code of a response to an order while earlier ones wait too long; it is no failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """`version` is the resource's, from its entity tag; None when the request was refused.

    `overloaded` counts those of the attempts that were refused because orders wait, and
    `retry_after` is what the response asks for, in seconds; 0 without it.
    """

    status: int
    body: Json
    version: int | None
    replayed: bool
    attempts: int
    overloaded: int = 0
    retry_after: float = 0.0

    @property
    def is_accepted(self) -> bool:
        return self.status < HTTPStatus.BAD_REQUEST

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))

    @property
    def is_overloaded(self) -> bool:
        return self.status == HTTPStatus.SERVICE_UNAVAILABLE and self.code == OVERLOADED


class Sender:
    """Connections to the processes of one system."""

    def __init__(self, session: aiohttp.ClientSession, hometown: Hometown) -> None:
        self._session = session
        self._hometown = hometown

    async def send(self, call: Call, key: str) -> Response:
        """The first response that is not temporary.

        Raises:
            Unanswered: there was none within RETRY_SECONDS_MAX.
        """
        deadline = time.monotonic() + RETRY_SECONDS_MAX
        attempts, overloaded, pause = 0, 0, PAUSE_SECONDS_MIN
        while True:
            attempts += 1
            answer = await self._attempt(call, key, attempts)
            if answer is not None and not is_temporary(answer):
                return replace(answer, overloaded=overloaded)
            if time.monotonic() >= deadline:
                raise Unanswered(f"{call.path}: {answer or 'no connection'}")
            overloaded += answer is not None and answer.is_overloaded
            await asyncio.sleep(max(pause, answer.retry_after if answer else 0.0))
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    async def _attempt(self, call: Call, key: str, attempts: int) -> Response | None:
        """None when the process was unavailable, or died before it answered."""
        url = self._hometown.addresses[call.process] + call.path
        headers = self._hometown.headers(call.process) | {"Idempotency-Key": key}
        try:
            async with self._session.post(url, json=call.body, headers=headers) as response:
                return Response(
                    status=response.status,
                    body=await response.json(content_type=None),
                    version=parse_version(response.headers.get("ETag")),
                    replayed="Idempotency-Replayed" in response.headers,
                    attempts=attempts,
                    retry_after=float(response.headers.get("Retry-After", 0)),
                )
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None


def parse_version(entity_tag: str | None) -> int | None:
    return int(entity_tag.strip('"')) if entity_tag else None


def is_temporary(answer: Response) -> bool:
    """Whether the same request can be answered differently a moment later."""
    if answer.status == HTTPStatus.CONFLICT:
        return answer.code in AGAIN
    too_many = answer.status == HTTPStatus.TOO_MANY_REQUESTS
    return too_many or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR


@asynccontextmanager
async def open_sender(hometown: Hometown) -> AsyncIterator[Sender]:
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=ATTEMPT_SECONDS_MAX, sock_read=ATTEMPT_SECONDS_MAX
    )
    connector = aiohttp.TCPConnector(limit=CONNECTIONS_MAX, ssl=hometown.verify)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield Sender(session, hometown)
