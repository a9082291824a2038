"""What RFC 9110 says of every route, whatever it does: HEAD, conditions, content."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel, Field

from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.web import http
from shared.web.auth import RequestAuthenticator, require_scope
from shared.web.field_types import DIGITS, NUMBER, Integer

TAGGED, UNTAGGED, ENDLESS = "/v1/tagged", "/v1/untagged", "/v1/endless"
BODY = '{"name": "ä", "number": 5}'
JSON = "application/json"


class Thing(BaseModel):
    name: str
    number: Annotated[Integer, Field(ge=0, le=9_999)] = 0


@pytest.fixture
def client(authenticator: RequestAuthenticator, issuing: RunFolder) -> httpx.AsyncClient:
    """A client of an API whose routes know nothing of these rules."""
    router = APIRouter()
    scope = require_scope("users:read")

    @router.get(TAGGED)
    async def tagged(caller: Annotated[Any, scope], limit: Annotated[int, DIGITS] = 1) -> Response:
        return PlainTextResponse("tagged", headers={"ETag": '"7"', "X-Limit": str(limit)})

    @router.get(UNTAGGED)
    async def untagged(caller: Annotated[Any, scope], wait: Annotated[float, NUMBER] = 0) -> str:
        return "untagged"

    @router.get(ENDLESS)
    async def endless(caller: Annotated[Any, scope]) -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(0)
                yield b"piece"

        return StreamingResponse(pieces())

    @router.post("/v1/things")
    async def make(caller: Annotated[Any, scope], thing: Thing) -> str:
        return thing.name

    @router.delete("/v1/things")
    async def delete(caller: Annotated[Any, scope]) -> None:
        """Reads no content."""

    app = http.create_app("test", [router], resources=None, authenticator=authenticator)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = bearer(issuing, "clerk")
    return httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers)


@pytest.mark.parametrize(
    "path", [TAGGED, UNTAGGED, "/v1/nowhere", "/v1/things", "/health/live", "/openapi.json"]
)
async def test_head_is_get_without_its_content(client: httpx.AsyncClient, path: str) -> None:
    get, head = await client.get(path), await client.head(path)

    assert (head.status_code, head.headers) == (get.status_code, get.headers)
    assert (head.content, bool(get.content)) == (b"", True)


@pytest.mark.parametrize(("method", "headers"), [("HEAD", {}), ("GET", {"If-None-Match": "*"})])
async def test_an_endless_response_ends_with_its_head(
    client: httpx.AsyncClient, method: str, headers: dict[str, str]
) -> None:
    answer = await client.request(method, ENDLESS, headers=headers)

    assert (answer.status_code, answer.content) == (304 if headers else 200, b"")


async def test_a_span_is_that_of_the_request_as_it_was_sent(
    client: httpx.AsyncClient, spans: InMemorySpanExporter
) -> None:
    await client.head(TAGGED, headers={"If-None-Match": "*"})

    span = spans.get_finished_spans()[-1]
    assert span.name == f"HEAD {TAGGED}"
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 304


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (TAGGED, {"If-None-Match": '"7"'}, 304),
        (TAGGED, {"If-None-Match": '"8"'}, 200),
        (TAGGED, {"If-Match": '"8"'}, 412),
        (TAGGED, {"If-Match": '"7"', "If-None-Match": '"7"'}, 304),
        (TAGGED, {"If-Match": "7"}, 400),
        (UNTAGGED, {"If-None-Match": "*"}, 304),
        (UNTAGGED, {"If-None-Match": '"7"'}, 200),
        (UNTAGGED, {"If-Match": '""'}, 412),
        ("/v1/nowhere", {"If-Match": '"7"'}, 404),
        ("/v1/nowhere", {"If-None-Match": "*"}, 404),
        ("/v1/things", {"If-None-Match": "*"}, 405),
        ("/health/live", {"If-None-Match": "*"}, 304),
        (f"{TAGGED}?limit=x", {"If-None-Match": "*"}, 422),
    ],
)
async def test_a_condition_is_evaluated_on_the_response(
    client: httpx.AsyncClient, path: str, headers: dict[str, str], status: int
) -> None:
    get, head = await client.get(path, headers=headers), await client.head(path, headers=headers)

    assert (get.status_code, head.status_code) == (status, status)
    assert (head.content, bool(get.content)) == (b"", status != 304)
    assert ("Content-Type" in get.headers) == (status != 304)
    assert (get.headers.get("ETag") == '"7"') == (path == TAGGED and status in {200, 304})


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        (JSON, 200),
        ("Application/JSON", 200),
        ("application/json;charset=UTF-8", 200),
        ('application/json ; charset="utf-8"', 200),
        ("application/json; profile=x", 200),
        ("application/json; charset=utf-16", 415),
        ("application/json; charset=iso-8859-1", 415),
        ("application/jsonx", 415),
        ("application/problem+json", 415),
        ("text/json", 415),
        ("text/plain", 415),
        ("text/plain; charset=utf-8", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/octet-stream", 415),
        ("application/json, text/plain", 415),
        ("", 415),
        (None, 415),
    ],
)
async def test_content_is_declared_as_json_in_utf_8(
    client: httpx.AsyncClient, content_type: str | None, status: int
) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}

    answer = await client.post("/v1/things", content=BODY.encode(), headers=headers)

    assert answer.status_code == status, answer.text
    assert (answer.headers.get("Accept") == JSON) == (status == 415)
    assert status == 200 or answer.json()["code"] == "unsupported-media-type"


@pytest.mark.parametrize(
    ("encoding", "status"),
    [
        ("utf-8", 200),
        ("utf-8-sig", 200),
        *((f"utf-{bits}", 400) for bits in ("16", "16-le", "16-be", "32", "32-le", "32-be")),
        ("latin-1", 400),
        ("utf-7", 200),  # that of these letters is ASCII; others would be escaped in it
    ],
)
async def test_content_is_in_utf_8(client: httpx.AsyncClient, encoding: str, status: int) -> None:
    text = BODY.replace("ä", "a") if encoding == "utf-7" else BODY

    answer = await client.post(
        "/v1/things", content=text.encode(encoding), headers={"Content-Type": JSON}
    )

    assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("coding", "status"), [("gzip", 415), ("br", 415), ("Identity", 200), ("", 200)]
)
async def test_content_is_not_compressed(
    client: httpx.AsyncClient, coding: str, status: int
) -> None:
    headers = {"Content-Type": JSON, "Content-Encoding": coding}

    answer = await client.post("/v1/things", content=BODY.encode(), headers=headers)

    assert answer.status_code == status
    assert (answer.headers.get("Accept-Encoding") == "identity") == (status == 415)


async def test_two_media_types_are_none(client: httpx.AsyncClient) -> None:
    headers = [("Content-Type", JSON), ("Content-Type", "text/plain")]

    answer = await client.post("/v1/things", content=BODY.encode(), headers=headers)

    assert answer.status_code == 415


async def test_content_that_is_not_sent_needs_no_media_type(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/things")).status_code == 422
    assert (await client.delete("/v1/things")).status_code == 200
    head = {"Content-Type": "text/plain"}
    assert (await client.request("DELETE", "/v1/things", content=b"x", headers=head)).is_success


NOT_IN_DIGITS = [
    "1_0",
    "+5",
    "-5",
    "5.0",
    "5.",
    " 5",
    "5 ",
    "5\n",
    "0x5",
    "5e0",
    "٥",
    "５",
    "",
    "0" * 20,
]


@pytest.mark.parametrize("number", NOT_IN_DIGITS)
async def test_a_whole_number_in_a_query_is_written_in_digits(
    client: httpx.AsyncClient, number: str
) -> None:
    assert (await client.get(TAGGED, params={"limit": number})).status_code == 422


async def test_digits_in_a_query_are_a_number(client: httpx.AsyncClient) -> None:
    for number in ("5", "05", "9999999999999999999"):
        answer = await client.get(TAGGED, params={"limit": number})
        assert answer.headers["X-Limit"] == str(int(number))


@pytest.mark.parametrize(
    ("number", "status"),
    [
        *((number, 200) for number in ("0", "5", "2.5", "1e1", "1.5E-3")),
        *(
            (number, 422)
            for number in ("1_0", "+5", "-1", ".5", "5.", " 5", "nan", "inf", "05", "٥", "")
        ),
    ],
)
async def test_a_number_in_a_query_is_written_as_in_json(
    client: httpx.AsyncClient, number: str, status: int
) -> None:
    assert (await client.get(UNTAGGED, params={"wait": number})).status_code == status


@pytest.mark.parametrize("number", ["5.0", "5e0", '"5"', "true", "NaN", "1e999", "[5]"])
async def test_a_whole_number_in_json_is_written_in_digits(
    client: httpx.AsyncClient, number: str
) -> None:
    content = f'{{"name": "a", "number": {number}}}'

    answer = await client.post("/v1/things", content=content, headers={"Content-Type": JSON})

    assert answer.status_code == 422
