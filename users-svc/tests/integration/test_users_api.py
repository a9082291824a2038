"""Users over HTTP: responses and refusals."""

import asyncio
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import pytest

from users_svc.bootstrap import Resources

JACK: dict[str, Any] = {
    "name": "Jack",
    "address": " bj ",
    "gender": "male",
    "credit_limit": "100000.00",
    "effective_at": "2015-12-11T00:00:00Z",
}


@pytest.fixture
async def jack(client: httpx.AsyncClient) -> str:
    """The address of a registered user."""
    answer = await client.post("/v1/users", json=JACK)
    location: str = answer.headers["Location"]
    return location


async def test_a_user_is_registered(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/users", json=JACK)

    user = answer.json()
    assert answer.status_code == 201
    assert answer.headers["ETag"] == '"1"'
    assert answer.headers["Location"] == f"/v1/users/{user['user_id']}"
    assert user["address"] == "BJ"
    assert user["available_credit"] == "100000.00"
    profile = (await client.get(answer.headers["Location"])).json()
    assert profile == user | {"name": "Jack", "birth_year": None}


async def test_an_unknown_user_is_not_found(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"/v1/users/{uuid4()}")

    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-user")
    assert answer.headers["Content-Type"] == "application/problem+json"


FUTURE = "2999-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "wrong",
    [
        {"credit_limit": "-0.01"},
        {"credit_limit": "0.001"},
        {"credit_limit": "NaN"},
        {"credit_limit": "12345678901.00"},
        {"credit_limit": 0.1},
        {"credit_limit": "1e9"},
        {"credit_limit": "١٢"},
        {"credit_limit": "12\n"},
        {"birth_year": "1980"},
        {"effective_at": 5},
        {"effective_at": "0001-01-01T00:00:00+14:00"},
        {"address": "  "},
        {"gender": "unheard-of"},
        {"effective_at": "2015-12-11T00:00:00"},
        {"effective_at": FUTURE},
        {"name": ""},
        {"name": "Ja\x00ck"},
        {"name": "Ja\x85ck"},
        {"name": "\u3000"},
        {"effective_at": "2015-12-11 00:00Z"},
        {"birth_year": 1993.5},
        {"address": "B\x00J"},
        {"surprise": 1},
    ],
    ids=str,
)
async def test_a_malformed_registration_changes_nothing(
    client: httpx.AsyncClient, wrong: dict[str, object]
) -> None:
    answer = await client.post("/v1/users", json=JACK | wrong)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


async def test_an_unknown_path_or_method_is_a_problem_too(client: httpx.AsyncClient) -> None:
    path = await client.get("/v1/nothing")
    method = await client.delete("/v1/users")

    assert (path.status_code, path.json()["code"]) == (404, "not-found")
    assert (method.status_code, method.json()["code"]) == (405, "method-not-allowed")
    assert method.headers["Allow"] == "GET, HEAD, POST"


async def test_a_path_is_not_corrected(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/users/")

    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


async def test_a_body_that_is_not_utf_8_is_refused(client: httpx.AsyncClient) -> None:
    json = {"Content-Type": "application/json"}

    answer = await client.post("/v1/users", content=b"\xff", headers=json)

    assert (answer.status_code, answer.json()["code"]) == (400, "bad-request")


async def test_a_list_by_a_malformed_place_is_refused(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/users?address=%00")).status_code == 422


async def test_a_user_moves(client: httpx.AsyncClient, jack: str) -> None:
    answer = await client.post(f"{jack}/moves", json={"address": "sh"})

    assert (answer.status_code, answer.json()["address"]) == (200, "SH")
    assert answer.headers["ETag"] == '"2"'


async def test_a_move_to_the_same_place_is_refused(client: httpx.AsyncClient, jack: str) -> None:
    answer = await client.post(f"{jack}/moves", json={"address": "BJ"})

    assert (answer.status_code, answer.json()["code"]) == (409, "same-address")


async def test_a_move_in_the_future_is_refused(client: httpx.AsyncClient, jack: str) -> None:
    move = {"address": "SH", "effective_at": FUTURE}

    answer = await client.post(f"{jack}/moves", json=move)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


async def test_a_change_of_a_stale_version_is_refused(client: httpx.AsyncClient, jack: str) -> None:
    await client.post(f"{jack}/moves", json={"address": "SH"})

    answer = await client.post(f"{jack}/moves", json={"address": "GZ"}, headers={"If-Match": '"1"'})

    assert (answer.status_code, answer.json()["code"]) == (412, "version-conflict")
    assert (await client.get(jack)).json()["address"] == "SH"


async def test_a_change_of_the_current_version_is_applied(
    client: httpx.AsyncClient, jack: str
) -> None:
    answer = await client.post(f"{jack}/moves", json={"address": "GZ"}, headers={"If-Match": '"1"'})

    assert answer.status_code == 200


async def test_a_malformed_if_match_is_refused(client: httpx.AsyncClient, jack: str) -> None:
    answer = await client.post(
        f"{jack}/moves", json={"address": "GZ"}, headers={"If-Match": "latest"}
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-if-match")


async def test_a_repeated_request_has_one_effect_and_the_same_response(
    client: httpx.AsyncClient,
) -> None:
    headers = {"Idempotency-Key": "register-jack"}

    first = await client.post("/v1/users", json=JACK, headers=headers)
    second = await client.post("/v1/users", json=JACK, headers=headers)

    assert second.json() == first.json()
    assert second.status_code == 201
    assert second.headers["Location"] == first.headers["Location"]
    assert second.headers["ETag"] == first.headers["ETag"]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers


async def test_a_repeated_move_gets_the_same_response_and_is_not_refused(
    client: httpx.AsyncClient, jack: str
) -> None:
    move = partial(
        client.post, f"{jack}/moves", json={"address": "SH"}, headers={"Idempotency-Key": "move"}
    )

    await move()
    again = await move()

    assert (again.status_code, again.headers["ETag"]) == (200, '"2"')


async def test_of_equal_requests_at_once_one_is_applied(client: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "at-once"}

    answers = await asyncio.gather(
        *(client.post("/v1/users", json=JACK, headers=headers) for _ in range(8))
    )

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["user_id"] for answer in answers}) == 1


async def test_a_key_cannot_name_two_requests(client: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "k"}
    await client.post("/v1/users", json=JACK, headers=headers)

    answer = await client.post("/v1/users", json=JACK | {"name": "Tom"}, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency-key-reused")


async def test_a_request_whose_first_copy_is_still_being_recorded_is_refused(
    client: httpx.AsyncClient, resources: Resources
) -> None:
    headers = {"Idempotency-Key": "slow"}
    async with resources.pool.acquire() as slow, slow.transaction():
        await slow.execute(
            """
            INSERT INTO idempotency_keys
                (scope, key, fingerprint, status, headers, body, recorded_at)
            VALUES ('POST /v1/users clerk', 'slow', '', 201, '{}', '', now())
            """
        )
        answer = await client.post("/v1/users", json=JACK, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (409, "request-in-progress")


@pytest.mark.parametrize(
    ("headers", "lock"),
    [
        *(
            (headers, lock)
            for headers in ({}, {"Idempotency-Key": "first"})
            for lock in (
                "SELECT FROM streams FOR UPDATE",
                "LOCK TABLE streams IN SHARE MODE",
                "LOCK TABLE outbox IN SHARE MODE",
            )
        ),
        ({"Idempotency-Key": "first"}, "LOCK TABLE idempotency_keys IN SHARE MODE"),
    ],
)
async def test_a_wait_for_any_other_lock_is_busy(
    client: httpx.AsyncClient, resources: Resources, jack: str, headers: dict[str, str], lock: str
) -> None:
    async with resources.pool.acquire() as slow, slow.transaction():
        await slow.execute(lock)
        answer = await client.post(f"{jack}/moves", json={"address": "SH"}, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    assert int(answer.headers["Retry-After"]) > 0
    again = await client.post(f"{jack}/moves", json={"address": "SH"}, headers=headers)
    assert again.status_code == 200


async def test_a_malformed_if_match_is_refused_even_if_the_key_was_used_before(
    client: httpx.AsyncClient, jack: str
) -> None:
    key = {"Idempotency-Key": "move"}
    await client.post(f"{jack}/moves", json={"address": "SH"}, headers=key)

    answer = await client.post(
        f"{jack}/moves", json={"address": "SH"}, headers=key | {"If-Match": "latest"}
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-if-match")


async def test_a_malformed_key_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/users", json=JACK, headers={"Idempotency-Key": "a b"})

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-idempotency-key")
