"""Access to users: to oneself, or to all with the scope `all`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest

from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.runtime.identifiers import new_id

ME: dict[str, Any] = {
    "name": "Jack",
    "address": "BJ",
    "gender": "male",
    "credit_limit": "100.00",
}


@asynccontextmanager
async def calling(
    transport: httpx.ASGITransport, headers: dict[str, str]
) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=transport, base_url="http://users", headers=headers
    ) as client:
        yield client


@pytest.fixture
def my_id() -> UUID:
    return new_id()


@pytest.fixture
async def me(
    transport: httpx.ASGITransport, issuing: RunFolder, my_id: UUID
) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(transport, bearer(issuing, "user", str(my_id))) as client:
        yield client


async def test_a_user_who_registers_themselves_gets_the_id_of_their_token_once(
    me: httpx.AsyncClient, my_id: UUID
) -> None:
    first = await me.post("/v1/users", json=ME)
    again = await me.post("/v1/users", json=ME)

    assert (first.status_code, first.json()["user_id"]) == (201, str(my_id))
    assert (again.status_code, again.json()["code"]) == (409, "already-registered")
    assert (await me.get(f"/v1/users/{my_id}")).status_code == 200


async def test_a_user_who_registers_themselves_cannot_choose_any_credit_limit(
    me: httpx.AsyncClient, my_id: UUID
) -> None:
    too_much = await me.post("/v1/users", json=ME | {"credit_limit": "10000.01"})
    unknown = await me.get(f"/v1/users/{my_id}")
    enough = await me.post("/v1/users", json=ME | {"credit_limit": "10000.00"})

    assert (too_much.status_code, too_much.json()["code"]) == (403, "credit-limit-too-high")
    assert (unknown.status_code, enough.status_code) == (404, 201)


async def test_a_caller_whose_token_has_no_user_id_cannot_register(
    transport: httpx.ASGITransport, issuing: RunFolder
) -> None:
    async with calling(transport, bearer(issuing, "user", "no id")) as client:
        answer = await client.post("/v1/users", json=ME)

    assert (answer.status_code, answer.json()["code"]) == (403, "not-yours")


async def test_an_idempotency_key_belongs_to_its_caller(
    transport: httpx.ASGITransport, issuing: RunFolder
) -> None:
    """The same key, path and body: without the caller in the key, both would get one response."""
    ids = []
    for subject in (new_id(), new_id()):
        headers = bearer(issuing, "user", str(subject)) | {"Idempotency-Key": "same"}
        async with calling(transport, headers) as client:
            answer = await client.post("/v1/users", json=ME)
        ids.append(answer.json()["user_id"])
        assert ids[-1] == str(subject)
        assert "Idempotency-Replayed" not in answer.headers

    assert len(set(ids)) == 2


async def test_a_refused_caller_does_not_get_the_response_to_an_earlier_request(
    transport: httpx.ASGITransport, issuing: RunFolder, my_id: UUID
) -> None:
    """The caller is authenticated before the stored response is read."""
    key = {"Idempotency-Key": "same"}
    mine = bearer(issuing, "user", str(my_id))
    unscoped = bearer(issuing, "analyst", str(my_id))
    async with calling(transport, mine | key) as client:
        assert (await client.post("/v1/users", json=ME)).status_code == 201

    async with calling(transport, unscoped | key) as client:
        answer = await client.post("/v1/users", json=ME)

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient-scope")
