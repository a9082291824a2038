"""Things over HTTP: responses and refusals."""

from uuid import uuid4

import httpx
import pytest

from local_stack.run_folder import RunFolder
from local_stack.testing import bearer

FIRST = {"name": "first"}
OTHER = {"name": "other"}


@pytest.fixture
async def first(client: httpx.AsyncClient) -> str:
    """The address of a thing that was added."""
    location: str = (await client.post("/v1/things", json=FIRST)).headers["Location"]
    return location


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_a_thing_is_added(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/things", json=FIRST)

    added = answer.json()
    assert (answer.status_code, answer.headers["ETag"]) == (201, '"1"')
    assert added == {"thing_id": added["thing_id"], "name": "first"}
    assert answer.headers["Location"] == f"/v1/things/{added['thing_id']}"
    assert (await client.get(answer.headers["Location"])).json() == added


async def test_a_thing_is_renamed(client: httpx.AsyncClient, first: str) -> None:
    answer = await client.post(f"{first}/renames", json=OTHER)

    assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')
    assert (await client.get(first)).json()["name"] == "other"


async def test_the_same_name_is_refused(client: httpx.AsyncClient, first: str) -> None:
    assert code(await client.post(f"{first}/renames", json=FIRST)) == (409, "same-name")


async def test_an_unknown_thing_is_not_found(client: httpx.AsyncClient) -> None:
    unknown = f"/v1/things/{uuid4()}"

    assert code(await client.get(unknown)) == (404, "unknown-thing")
    assert code(await client.get(f"{unknown}/events")) == (404, "unknown-thing")
    assert code(await client.post(f"{unknown}/renames", json=OTHER)) == (404, "unknown-thing")


@pytest.mark.parametrize("wrong", [{"name": ""}, {"name": 1}, {"surprise": 1}, {}], ids=str)
async def test_a_malformed_request_is_refused(
    client: httpx.AsyncClient, wrong: dict[str, object]
) -> None:
    assert code(await client.post("/v1/things", json=wrong)) == (422, "invalid-request")


async def test_a_change_of_a_stale_version_is_refused(
    client: httpx.AsyncClient, first: str
) -> None:
    await client.post(f"{first}/renames", json=OTHER)

    answer = await client.post(
        f"{first}/renames", json={"name": "third"}, headers={"If-Match": '"1"'}
    )

    assert code(answer) == (412, "version-conflict")


async def test_a_repeated_request_gets_the_stored_response(client: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "add-first"}

    answer = await client.post("/v1/things", json=FIRST, headers=key)
    again = await client.post("/v1/things", json=FIRST, headers=key)

    assert again.json() == answer.json()
    assert again.headers["Idempotency-Replayed"] == "true"


async def test_the_history_is_listed_as_it_was_recorded(
    client: httpx.AsyncClient, first: str
) -> None:
    await client.post(f"{first}/renames", json=OTHER)

    page = (await client.get(f"{first}/events")).json()

    assert [event["type"] for event in page["events"]] == ["thing-added", "thing-renamed"]
    assert [event["data"]["name"] for event in page["events"]] == ["first", "other"]


async def test_a_caller_without_the_scope_is_refused(
    transport: httpx.ASGITransport, issuing: RunFolder
) -> None:
    async with httpx.AsyncClient(
        transport=transport, base_url="http://things", headers=bearer(issuing, "analyst")
    ) as analyst:
        read = await analyst.get("/v1/things")
        write = await analyst.post("/v1/things", json=FIRST)

    assert code(read) == (403, "insufficient-scope")
    assert code(write) == (403, "insufficient-scope")
