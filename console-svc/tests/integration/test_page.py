"""The pages as they are sent: what is shown, what is refused, and what is escaped."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from console_svc.__main__ import create_app
from console_svc.control import Control
from console_svc.guard import TOKEN
from console_svc.orders import CallFailed, Shop
from console_svc.page import Console
from console_svc.stack import Parked
from console_svc.watch import Watch
from shared.runtime.declarations import load_declarations
from test_support.small_stack import Peer, SmallStack

ADDRESS = "http://127.0.0.1:8000"
ORDER = "01936f2a-7b00-7000-8000-000000000003"
TRACE = "0af7651916cd43dd8448eb211c80319c"
OWN = {"Origin": ADDRESS}
JOURNEY = {
    "order_id": ORDER,
    "status": "pending",
    "hops": [
        {
            "hop": "recorded",
            "type": "order-placed",
            "at": "2016-11-11T00:00:00Z",
            "trace_id": TRACE,
        }
    ],
    "unknown": ["users-svc is unavailable: <ConnectTimeout>"],
}
SPAN = {
    "spanID": "1",
    "operationName": "POST /v1/<orders>",
    "processID": "p1",
    "startTime": 1,
    "duration": 2000,
    "tags": [],
}


class KnownOrders(Shop):
    """One order and its trace."""

    async def place_order(self) -> str:
        return ORDER

    async def read_journey(self, order_id: str) -> dict[str, Any]:
        if order_id != ORDER:
            raise CallFailed("orders-api: there is no such order")
        return dict(JOURNEY)

    async def find_trace(self, trace_id: str) -> dict[str, Any] | None:
        if trace_id != TRACE:
            return None
        processes = {"p1": {"serviceName": "orders-api"}}
        return {"traceID": TRACE, "processes": processes, "spans": [SPAN]}


@pytest.fixture
async def visitor(stack: SmallStack, client: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    shop = KnownOrders(stack.entries, client, lambda role: role)
    control = Control(stack, shop, client)
    console = Console(
        declared=load_declarations(),
        stack=stack,
        watch=Watch(stack, client),
        control=control,
        shop=shop,
    )
    transport = httpx.ASGITransport(create_app(console))
    async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as visitor:
        yield visitor
    await control.close()


async def test_the_first_page_shows_states_and_buttons(visitor: httpx.AsyncClient) -> None:
    response = await visitor.get("/")

    assert response.status_code == 200
    assert '<span class="state up">up</span>' in response.text
    assert "Kill users-relay" in response.text
    assert "users-worker is down" in response.text
    assert "script-src 'self'" in response.headers["content-security-policy"]
    assert "unsafe-inline" not in response.headers["content-security-policy"]
    assert " style=" not in response.text


async def test_in_containers_commands_are_shown_and_buttons_refused(
    visitor: httpx.AsyncClient, stack: SmallStack
) -> None:
    stack.can_control = False

    html = (await visitor.get("/")).text
    form = {"token": TOKEN, "process": "users-relay"}
    refused = await visitor.post("/actions/kill", data=form, headers=OWN)

    assert "docker compose kill users-relay" in html
    assert "Kill users-relay" not in html
    assert (refused.status_code, "docker compose kill" in refused.text) == (409, True)


async def test_a_button_kills_and_the_page_reports_it(
    visitor: httpx.AsyncClient, stack: SmallStack
) -> None:
    form = {"token": TOKEN, "process": "users-relay"}

    response = await visitor.post("/actions/kill", data=form, headers=OWN)

    assert (response.status_code, response.headers["location"]) == (303, "/#tour")
    assert "<b>users-relay killed</b>" in (await visitor.get("/")).text


@pytest.mark.parametrize(
    ("path", "form", "status"),
    [
        ("/actions/kill", {"token": TOKEN, "process": "kafka"}, 404),
        ("/actions/format", {"token": TOKEN}, 404),
        ("/actions/kill", {"process": "users-relay"}, 403),
        ("/orders", {}, 403),
    ],
)
async def test_what_cannot_be_done_is_a_page_with_its_reason(
    visitor: httpx.AsyncClient,
    stack: SmallStack,
    path: str,
    form: Mapping[str, str],
    status: int,
) -> None:
    response = await visitor.post(path, data=form, headers=OWN)

    assert response.status_code == status
    assert 'id="notice"' in response.text
    assert stack.done == []


async def test_a_log_is_shown_as_text(visitor: httpx.AsyncClient) -> None:
    html = (await visitor.get("/processes/users-relay")).text

    assert "&lt;b&gt;users-relay&lt;/b&gt; has started" in html


async def test_an_order_that_was_placed_is_followed(visitor: httpx.AsyncClient) -> None:
    placed = await visitor.post("/orders", data={"token": TOKEN}, headers=OWN)
    html = (await visitor.get(placed.headers["location"])).text

    assert placed.headers["location"] == f"/orders/{ORDER}"
    assert "recorded in the event store" in html
    assert "POST /v1/&lt;orders&gt;" in html
    assert "&lt;ConnectTimeout&gt;" in html


@pytest.mark.parametrize(
    ("text", "place"), [(f" {ORDER.upper()} ", f"/orders/{ORDER}"), (TRACE, f"/traces/{TRACE}")]
)
async def test_an_id_leads_to_its_page(visitor: httpx.AsyncClient, text: str, place: str) -> None:
    response = await visitor.get("/follow", params={"id": text})

    assert response.headers["location"] == place
    assert (await visitor.get(place)).status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/follow?id=//evil.example", 400),
        ("/follow", 400),
        ("/processes/none", 404),
        ("/orders/01936f2a-7b00-7000-8000-000000000004", 502),
        ("/orders/none", 404),
        ("/actions/load", 405),
        ("/files/none.css", 404),
    ],
)
async def test_what_is_not_there_is_said(
    visitor: httpx.AsyncClient, path: str, status: int
) -> None:
    assert (await visitor.get(path)).status_code == status


async def test_a_trace_that_jaeger_does_not_have_is_said(visitor: httpx.AsyncClient) -> None:
    response = await visitor.get(f"/traces/{'0' * 32}")

    assert "Jaeger has no such trace" in response.text


@pytest.mark.parametrize("file", ["console.css", "console.js", "icon.svg", "vendor/htmx.min.js"])
async def test_each_file_of_the_page_is_there(visitor: httpx.AsyncClient, file: str) -> None:
    assert (await visitor.get(f"/files/{file}")).status_code == 200


async def test_a_parked_stream_is_shown_with_its_reason(
    visitor: httpx.AsyncClient, stack: SmallStack, peers: dict[str, Peer]
) -> None:
    labels = 'database="users",consumer="users-worker"'
    peers["observer"].more = f"hometown_parked_streams{{{labels}}} 1\n"
    stack.parked = [
        Parked(
            consumer="users-worker",
            stream_id=ORDER,
            topic="orders.v1",
            reason="invalid: <quantity>",
            parked_at=datetime.now(UTC),
            waiting=2,
        )
    ]

    html = (await visitor.get("/")).text

    assert "invalid: &lt;quantity&gt;" in html
    assert "1 stream is parked" in html
    assert stack.asked == [{"users": ["users-worker"]}]


async def test_without_a_parked_stream_no_database_is_read(
    visitor: httpx.AsyncClient, stack: SmallStack
) -> None:
    assert "No stream is parked" in (await visitor.get("/")).text
    assert stack.asked == []
