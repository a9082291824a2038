"""The conditions of requests (RFC 9110, section 13) on a stored resource, and odd targets."""

import asyncio
from collections.abc import Sequence
from functools import partial

import httpx
import pytest

from users_svc.schemas import JACK

UNKNOWN = "/v1/users/01936f2a-7b00-7000-8000-0000000000ff"
TAGS_THAT_MATCH = ['"1"', '"0", "1"', '"0","1"', ' , "x,y" ,"1", ', "*", 'W/"2", "1"']
TAGS_THAT_DO_NOT = [
    '"2"',
    '"000000001"',
    'W/"1"',
    '"abc"',
    '"99999999999999999999"',
    '"1,2"',
    '"0", W/"1"',
    "",
    ",",
]
MALFORMED = [
    "1",
    '"1 "',
    "latest",
    '"1',
    '1"',
    "'1'",
    '"1" "2"',
    'w/"1"',
    '"1", *',
    "**",
    '"1"; "2"',
    "W/1",
]


@pytest.fixture
async def jack(client: httpx.AsyncClient) -> str:
    """The path of a user at version 1."""
    registered = await client.post("/v1/users", json=JACK)
    return str(registered.headers["Location"])


def lines(name: str, *values: str) -> list[tuple[str, str]]:
    return [(name, value) for value in values]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        *((lines("If-Match", tags), 200) for tags in TAGS_THAT_MATCH),
        *((lines("If-Match", tags), 412) for tags in TAGS_THAT_DO_NOT),
        *((lines("If-Match", tags), 400) for tags in MALFORMED),
        (lines("If-Match", '"0"', '"1"'), 200),
        (lines("If-Match", '"0"', '"2"'), 412),
        (lines("If-Match", "*", '"1"'), 400),
        (lines("If-None-Match", "*"), 412),
        (lines("If-None-Match", 'W/"1"'), 412),
        (lines("If-None-Match", '"0"', '"1"'), 412),
        (lines("If-None-Match", '"0", "2"'), 200),
        (lines("If-None-Match", "1"), 400),
        ([("If-Match", '"1"'), ("If-None-Match", '"2"')], 200),
        ([("If-Match", '"1"'), ("If-None-Match", '"1"')], 412),
    ],
)
async def test_the_conditions_of_a_change_are_evaluated(
    client: httpx.AsyncClient, jack: str, headers: Sequence[tuple[str, str]], status: int
) -> None:
    limit = {"credit_limit": "20000.00"}

    answer = await client.put(f"{jack}/credit-limit", json=limit, headers=[*headers])

    assert answer.status_code == status, answer.text
    changed = (await client.get(jack)).json()["credit_limit"] == limit["credit_limit"]
    assert changed == (status == 200)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        *((lines("If-None-Match", tags), 304) for tags in [*TAGS_THAT_MATCH, 'W/"1"']),
        *((lines("If-None-Match", tags), 200) for tags in ['"2"', '"abc"', "", '"000000001"']),
        *((lines("If-None-Match", tags), 400) for tags in MALFORMED),
        *((lines("If-Match", tags), 200) for tags in TAGS_THAT_MATCH),
        *((lines("If-Match", tags), 412) for tags in TAGS_THAT_DO_NOT),
        ([("If-Match", '"2"'), ("If-None-Match", '"1"')], 412),
        (lines("If-Modified-Since", "Sat, 29 Oct 2044 19:43:31 GMT"), 200),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_conditions_of_a_read_are_evaluated(
    client: httpx.AsyncClient,
    jack: str,
    method: str,
    headers: Sequence[tuple[str, str]],
    status: int,
) -> None:
    answer = await client.request(method, jack, headers=[*headers])

    assert answer.status_code == status, answer.text
    assert (status in {200, 304}) == (answer.headers.get("ETag") == '"1"')
    assert bool(answer.content) == (method == "GET" and status != 304)
    assert (status == 304) == ("Content-Type" not in answer.headers)


@pytest.mark.parametrize("headers", [{"If-Match": "*"}, {"If-Match": '"1"'}])
async def test_a_condition_is_ignored_if_there_is_no_resource(
    client: httpx.AsyncClient, jack: str, headers: dict[str, str]
) -> None:
    move = partial(client.post, json={"address": "SH"}, headers=headers)

    assert (await move(f"{UNKNOWN}/moves")).status_code == 404
    await client.delete(jack)
    assert (await move(f"{jack}/moves")).status_code == 410


async def test_a_resource_that_is_to_be_made_has_no_tag_yet(client: httpx.AsyncClient) -> None:
    register = partial(client.post, "/v1/users", json=JACK)

    assert (await register(headers={"If-Match": "*"})).status_code == 412
    assert (await register(headers={"If-None-Match": "*"})).status_code == 201


async def test_a_repeated_request_gets_its_response_although_its_condition_no_longer_holds(
    client: httpx.AsyncClient, jack: str
) -> None:
    headers = {"If-Match": '"1"', "Idempotency-Key": "once"}
    move = partial(client.post, f"{jack}/moves", json={"address": "SH"}, headers=headers)

    assert [(await move()).status_code for _ in range(2)] == [200, 200]


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "key"}])
@pytest.mark.parametrize("text", ["%00", "a%00b", "%0d%0a", "%ff", "%ed%a0%80", "%F0%9F%98%80"])
async def test_a_target_with_any_character_is_refused(
    client: httpx.AsyncClient, text: str, headers: dict[str, str]
) -> None:
    answer = await client.post(f"/v1/users/{text}/moves", json={"address": "SH"}, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


async def test_of_two_idempotency_keys_none_is_taken(client: httpx.AsyncClient, jack: str) -> None:
    answer = await client.post(
        f"{jack}/moves", json={"address": "SH"}, headers=lines("Idempotency-Key", "one", "two")
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-idempotency-key")


async def test_of_changes_at_once_with_one_condition_one_is_applied(
    client: httpx.AsyncClient, jack: str
) -> None:
    changes = [
        client.put(
            f"{jack}/credit-limit",
            json={"credit_limit": f"{20_000 + number}.00"},
            headers={"If-Match": '"1"'},
        )
        for number in range(8)
    ]

    answers = await asyncio.gather(*changes)

    assert sorted(each.status_code for each in answers) == [200, *[412] * 7]
