"""The OpenAPI document of users-svc is valid, complete, and true."""

import copy
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

import users_svc
from test_support.documents import (
    OF_NO_OPERATION,
    Json,
    codes_documented,
    codes_raised,
    flaws_of,
    operations,
)

PACKAGE = Path(users_svc.__file__).parent


@pytest.fixture
async def document(client: httpx.AsyncClient) -> Json:
    """As it is served, without a token."""
    answer = await client.get("/openapi.json", headers={"Authorization": ""})
    return dict(answer.json())


async def test_the_document_has_no_flaw(document: Json) -> None:
    assert flaws_of(document) == []


@pytest.mark.parametrize(
    ("name", "wrong"), [("address", 1), ("credit_limit", 1.5), ("user_id", "no id")]
)
async def test_an_example_that_does_not_fit_is_a_flaw(
    document: Json, name: str, wrong: object
) -> None:
    broken = copy.deepcopy(document)
    broken["components"]["schemas"]["UserResponse"]["examples"][0][name] = wrong

    assert flaws_of(broken) != []


async def test_every_code_is_documented(document: Json) -> None:
    assert codes_raised(PACKAGE) - codes_documented(document) == OF_NO_OPERATION


async def test_every_operation_documents_its_scope(document: Json) -> None:
    for _, operation in operations(document):
        [(scheme, scopes)] = operation["security"][0].items()
        assert scheme in document["components"]["securitySchemes"]
        assert scopes
        assert f"`{scopes[0]}`" in operation["description"]


async def test_the_page_needs_no_other_host(client: httpx.AsyncClient) -> None:
    no_token = {"Authorization": ""}
    page = (await client.get("/docs", headers=no_token)).text
    needed = re.findall(r'(?:src|href)="([^"]+)"', page)

    answers = [await client.get(path, headers=no_token) for path in needed]

    assert len(answers) == 3
    assert {answer.status_code for answer in answers} == {200}
    assert "//" not in "".join(needed)


async def test_every_request_example_is_accepted(client: httpx.AsyncClient, document: Json) -> None:
    def example(schema: str) -> Any:
        return document["components"]["schemas"][schema]["examples"][0]

    registered = await client.post("/v1/users", json=example("RegisterUserRequest"))
    user = registered.headers["Location"]
    moved = await client.post(f"{user}/moves", json=example("MoveUserRequest"))
    limited = await client.put(f"{user}/credit-limit", json=example("ChangeCreditLimitRequest"))

    assert [each.status_code for each in (registered, moved, limited)] == [201, 200, 200]
    assert sum("requestBody" in operation for _, operation in operations(document)) == 3
