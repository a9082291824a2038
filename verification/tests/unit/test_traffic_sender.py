"""A call is sent again until it is answered; an order that is refused for now is counted apart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from verification.load.actions import CancelOrder, Planned
from verification.load.calls import Call
from verification.load.driver import Outcome
from verification.load.report import Kind
from verification.load.sender import Response, open_sender

CALL = Call(process="orders-api", path="/v1/orders", body={})
OVERLOADED = (503, "overloaded", "7")
UNAVAILABLE = (503, "unavailable", "3")


class Api:
    """Refuses with these statuses, codes and Retry-After, then accepts. `pauses` are a client's."""

    verify = False

    def __init__(self, *refusals: tuple[int, str, str]) -> None:
        self.refusals = list(refusals)
        self.pauses: list[float] = []
        self.addresses: dict[str, str] = {}

    def headers(self, process: str) -> dict[str, str]:
        return {}

    async def answer(self, request: web.Request) -> web.Response:
        if not self.refusals:
            return web.json_response({"order_id": "1"}, status=201, headers={"ETag": '"1"'})
        status, code, seconds = self.refusals.pop(0)
        return web.json_response({"code": code}, status=status, headers={"Retry-After": seconds})

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_post("/v1/orders", self.answer)
        async with TestServer(app) as server:
            self.addresses["orders-api"] = str(server.make_url("")).rstrip("/")
            yield


async def send(api: Api, monkeypatch: pytest.MonkeyPatch) -> Response:
    hometown: Any = api
    async with api.serving(), open_sender(hometown) as opened:
        monkeypatch.setattr(asyncio, "sleep", api.pause)
        try:
            return await opened.send(CALL, "key")
        finally:
            monkeypatch.undo()


async def test_a_refused_order_is_sent_again_when_the_response_asks_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api(OVERLOADED, OVERLOADED)

    response = await send(api, monkeypatch)

    assert (response.status, response.attempts, response.overloaded) == (201, 3, 2)
    assert api.pauses == [7.0, 7.0]


async def test_a_failure_is_not_counted_as_overload(monkeypatch: pytest.MonkeyPatch) -> None:
    response = await send(Api(UNAVAILABLE, OVERLOADED), monkeypatch)

    assert (response.attempts, response.overloaded) == (3, 1)


def test_the_table_counts_refusals_for_now_apart_from_failures() -> None:
    response = Response(status=201, body={}, version=1, replayed=False, attempts=5, overloaded=3)
    outcome = Outcome(
        planned=Planned(number=1, due_seconds=0, action=CancelOrder(order=1)),
        begun_seconds=0,
        answered_seconds=1,
        response=response,
    )
    kind = Kind(name="all", outcomes=[outcome])

    assert (kind.sent_again, kind.overloaded, kind.refused, kind.unanswered) == (1, 3, 0, 0)
