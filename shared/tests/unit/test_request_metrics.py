"""Every request counts with its route and its status, also one that is refused or fails."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from shared.web import request_metrics
from shared.web.health import health_routes
from shared.web.request_metrics import RequestMetrics

Values = tuple[str | int, ...]
"""Method, route and status."""


class Recorded:
    """A histogram that keeps what is recorded."""

    def __init__(self) -> None:
        self.all: list[Values] = []

    def record(self, seconds: float, *values: str | int) -> None:
        assert seconds >= 0
        self.all.append(values)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    histogram = Recorded()
    monkeypatch.setattr(request_metrics, "DURATION", histogram)
    return histogram


async def fail(request: Request) -> Response:
    raise RuntimeError


async def request(method: str, path: str, app: ASGIApp) -> None:
    transport = httpx.ASGITransport(app=RequestMetrics(app), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        await client.request(method, path)


async def test_a_request_counts_with_its_status(recorded: Recorded) -> None:
    app = Starlette(routes=[Route("/a", lambda request: PlainTextResponse("a", 201))])

    await request("GET", "/a", app)
    await request("GET", "/b", app)

    assert recorded.all == [("GET", "/a", 201), ("GET", "", 404)]


async def test_a_failed_request_counts_as_an_error(recorded: Recorded) -> None:
    await request("GET", "/a", Starlette(routes=[Route("/a", fail)]))

    assert recorded.all == [("GET", "/a", 500)]


async def test_the_route_is_named_and_not_the_path(recorded: Recorded) -> None:
    class Found:
        path_format = "/v1/users/{user_id}"

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = Found()
        await PlainTextResponse("found")(scope, receive, send)

    await request("GET", "/v1/users/1", app)

    assert recorded.all == [("GET", "/v1/users/{user_id}", 200)]


async def test_an_unknown_method_is_none_of_a_thousand(recorded: Recorded) -> None:
    await request("FETCH", "/", Starlette())

    assert [method for method, _, _ in recorded.all] == ["_OTHER"]


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics"])
async def test_probes_do_not_count(recorded: Recorded, path: str) -> None:
    await request("GET", path, Starlette(routes=health_routes({})))

    assert recorded.all == []
