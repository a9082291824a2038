"""The same write request twice, so that the second copy meets the effects of the first.

`RepeatedRequests` has the tests of every service that answers write requests.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import asyncpg
import httpx
import pytest
from fastapi import APIRouter

from local_stack.run_folder import RunFolder
from shared.messaging.messages import IdempotencyKey
from shared.web import idempotency, write_requests
from shared.web.openapi import CHANGES, find_routes, get_methods

GAPS_MILLISECONDS = range(6)
"""Between two copies that are sent at almost the same time."""

TWINS = int(os.environ.get("HOMETOWN_TWINS", len(GAPS_MILLISECONDS)))
"""Pairs of each request; a thousand take a minute for each route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """A request that can be sent again; `route` is its method and the path of its route."""

    route: str
    path: str
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    async def send(self, client: httpx.AsyncClient, key: str) -> httpx.Response:
        headers = {**self.headers, "Idempotency-Key": key}
        method = self.route.partition(" ")[0]
        return await client.request(method, self.path, json=self.json, headers=headers)


Prepare = Callable[[httpx.AsyncClient, RunFolder], Awaitable[WriteRequest]]
"""Does what has to be there before a request, and returns it."""


class RepeatedRequests:
    """A repeated request gets the stored response, also if it overtakes the first one on its way.

    A subclass lists the requests of its service. `refused` are those of them that are refused, with
    this status, where the stored response is not looked up once more.
    """

    routers: ClassVar[Sequence[APIRouter]]
    requests: ClassVar[Sequence[Prepare]]
    refused: ClassVar[Mapping[Prepare, int]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each request."""
        if "status" in metafunc.fixturenames:
            names = [f"{prepare.__name__}-{status}" for prepare, status in self.refused.items()]
            metafunc.parametrize(("prepare", "status"), self.refused.items(), ids=names)
        elif "prepare" in metafunc.fixturenames:
            names = [prepare.__name__ for prepare in self.requests]
            metafunc.parametrize("prepare", self.requests, ids=names)

    async def test_every_route_that_writes_is_repeated_here(
        self, client: httpx.AsyncClient, issuing: RunFolder
    ) -> None:
        prepared = [await prepare(client, issuing) for prepare in self.requests]

        assert {request.route for request in prepared} == list_write_routes(self.routers)

    async def test_a_request_that_is_recorded_after_it_was_looked_up_is_repeated(
        self,
        client: httpx.AsyncClient,
        issuing: RunFolder,
        monkeypatch: pytest.MonkeyPatch,
        prepare: Prepare,
    ) -> None:
        request = await prepare(client, issuing)

        first, second = await send_copy_after_look_up(client, request, monkeypatch)

        assert_same_success(first, second)

    async def test_without_the_second_look_up_it_is_refused(
        self,
        client: httpx.AsyncClient,
        issuing: RunFolder,
        monkeypatch: pytest.MonkeyPatch,
        prepare: Prepare,
        status: int,
    ) -> None:
        """The negative control."""
        request = await prepare(client, issuing)

        first, second = await send_copy_after_look_up(
            client, request, monkeypatch, is_looked_up_again=False
        )

        assert first.is_success
        assert second.status_code == status

    async def test_twins_get_the_same_response(
        self, client: httpx.AsyncClient, issuing: RunFolder, prepare: Prepare
    ) -> None:
        for first, second in await send_twins(client, lambda: prepare(client, issuing)):
            assert_same_success(first, second)


def list_write_routes(routers: Iterable[APIRouter]) -> set[str]:
    """All routes that change something, such as `POST /v1/things`."""
    return {
        f"{method} {route.path_format}"
        for route in find_routes(routers)
        for method in get_methods(route) & CHANGES
    }


async def do_nothing() -> None:
    """Nothing else happens between the two copies."""


async def send_copy_after_look_up(
    client: httpx.AsyncClient,
    request: WriteRequest,
    monkeypatch: pytest.MonkeyPatch,
    *,
    then: Callable[[], Awaitable[None]] = do_nothing,
    is_looked_up_again: bool = True,
) -> tuple[httpx.Response, httpx.Response]:
    """Send a request, and its copy as soon as no stored response was found for the request.

    The copy is answered, and `then` has happened, before the request goes on. Without the
    mechanism, the request is not looked up again.
    """
    look_up = idempotency.raise_if_answered
    copies: list[httpx.Response] = []
    has_begun = False

    async def send_copy_once(pool: asyncpg.Pool, key: IdempotencyKey) -> None:
        nonlocal has_begun
        if not copies or is_looked_up_again:
            await look_up(pool, key)
        if not has_begun:
            has_begun = True
            copies.append(await request.send(client, "repeated"))
            await then()

    monkeypatch.setattr(write_requests, "raise_if_answered", send_copy_once)
    repeated = await request.send(client, "repeated")
    return copies[0], repeated


async def send_twins(
    client: httpx.AsyncClient, prepare: Callable[[], Awaitable[WriteRequest]]
) -> list[tuple[httpx.Response, httpx.Response]]:
    """Two copies of a request at almost the same time, TWINS times, with each gap in turn."""

    async def send_later(request: WriteRequest, key: str, gap_milliseconds: int) -> httpx.Response:
        await asyncio.sleep(gap_milliseconds / 1000)
        return await request.send(client, key)

    pairs = []
    for number in range(TWINS):
        request, key = await prepare(), f"twin-{number}"
        gap = GAPS_MILLISECONDS[number % len(GAPS_MILLISECONDS)]
        pairs.append(await asyncio.gather(request.send(client, key), send_later(request, key, gap)))
    return pairs


def assert_same_success(first: httpx.Response, second: httpx.Response) -> None:
    """Both copies got the response of the one that was recorded."""
    assert first.is_success, first.text
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers["ETag"] == first.headers["ETag"]
    replayed = ["Idempotency-Replayed" in each.headers for each in (first, second)]
    assert sorted(replayed) == [False, True]
