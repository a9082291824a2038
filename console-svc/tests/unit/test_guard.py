"""Only a form of the page itself acts: the page of another site, or another name, does not."""

from collections.abc import AsyncIterator, Mapping

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from console_svc.guard import FORM_BYTES_MAX, TOKEN, Guard, Refused, read_form

ADDRESS = "http://127.0.0.1:8000"
EVIL = "http://evil.example"
FORM = {"token": TOKEN, "process": "users-relay"}


async def show(request: Request) -> Response:
    return PlainTextResponse("shown")


async def act(request: Request) -> Response:
    try:
        fields = await read_form(request)
    except Refused as refused:
        return PlainTextResponse(f"{refused}", 403)
    return PlainTextResponse(f"done with {fields['process']}")


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = Starlette(
        routes=[
            Route("/", show),
            Route("/metrics", show),
            Route("/health/ready", show),
            Route("/actions", act, methods=["POST"]),
        ]
    )
    app.add_middleware(Guard)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
        yield client


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": ADDRESS},
        {"Sec-Fetch-Site": "same-origin"},
        {"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"},
    ],
)
async def test_a_form_of_the_page_acts(
    client: httpx.AsyncClient, headers: Mapping[str, str]
) -> None:
    response = await client.post("/actions", data=FORM, headers=headers)

    assert (response.status_code, response.text) == (200, "done with users-relay")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8003"},
        {"Origin": "https://127.0.0.1:8000"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": ADDRESS, "Sec-Fetch-Site": "cross-site"},
        {"Origin": EVIL, "Sec-Fetch-Site": "same-origin"},
    ],
)
async def test_a_request_that_does_not_come_from_the_page_is_refused_even_with_its_token(
    client: httpx.AsyncClient, headers: Mapping[str, str]
) -> None:
    assert (await client.post("/actions", data=FORM, headers=headers)).status_code == 403


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"data": {"process": "users-relay"}}, "not of this page"),
        ({"data": {**FORM, "token": "guessed"}}, "not of this page"),
        ({"json": FORM}, "not a form"),
        ({"data": {**FORM, "more": "x" * FORM_BYTES_MAX}}, "too large"),
    ],
)
async def test_a_form_without_its_token_is_refused(
    client: httpx.AsyncClient, content: Mapping[str, Mapping[str, str]], reason: str
) -> None:
    response = await client.post("/actions", headers={"Origin": ADDRESS}, **content)  # type: ignore[arg-type]

    assert response.status_code == 403
    assert reason in response.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", ""])
async def test_under_another_name_nothing_is_shown(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/", headers={"Host": host})).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:24000", "[::1]:8000"])
async def test_under_the_names_of_this_machine_the_page_is_shown(
    client: httpx.AsyncClient, host: str
) -> None:
    assert (await client.get("/", headers={"Host": host})).text == "shown"


@pytest.mark.parametrize("path", ["/metrics", "/health/ready"])
async def test_other_processes_of_the_stack_can_ask_how_it_is(
    client: httpx.AsyncClient, path: str
) -> None:
    assert (await client.get(path, headers={"Host": "console:8000"})).text == "shown"
