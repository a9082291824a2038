"""A repeated request gets the stored response, also if it overtakes the first one on its way."""

from collections.abc import Sequence
from typing import Any, ClassVar

import httpx

from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.runtime.identifiers import new_id
from test_support.repeats import Prepare, RepeatedRequests, WriteRequest
from users_svc import api

JACK: dict[str, Any] = {
    "name": "Jack",
    "address": "BJ",
    "gender": "male",
    "credit_limit": "100.00",
}
FIRST_VERSION = {"If-Match": '"1"'}


async def register_jack(client: httpx.AsyncClient) -> str:
    """The address of a new user."""
    location: str = (await client.post("/v1/users", json=JACK)).headers["Location"]
    return location


async def register(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    return WriteRequest(route="POST /v1/users", path="/v1/users", json=JACK)


async def register_oneself(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    headers = bearer(issuing, "user", str(new_id()))
    return WriteRequest(route="POST /v1/users", path="/v1/users", json=JACK, headers=headers)


async def move(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    jack = await register_jack(client)
    return WriteRequest(
        route="POST /v1/users/{user_id}/moves", path=f"{jack}/moves", json={"address": "SH"}
    )


async def move_if_unchanged(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    jack = await register_jack(client)
    return WriteRequest(
        route="POST /v1/users/{user_id}/moves",
        path=f"{jack}/moves",
        json={"address": "SH"},
        headers=FIRST_VERSION,
    )


async def change_credit_limit(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    jack = await register_jack(client)
    return WriteRequest(
        route="PUT /v1/users/{user_id}/credit-limit",
        path=f"{jack}/credit-limit",
        json={"credit_limit": "1.00"},
    )


async def delete(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    return WriteRequest(route="DELETE /v1/users/{user_id}", path=await register_jack(client))


REQUESTS: Sequence[Prepare] = (
    register,
    register_oneself,
    move,
    move_if_unchanged,
    change_credit_limit,
    delete,
)


class TestUsers(RepeatedRequests):
    routers = (api.router,)
    requests = REQUESTS
    refused: ClassVar = {register_oneself: 409, move: 409, move_if_unchanged: 412, delete: 410}
