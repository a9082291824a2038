"""The OpenAPI document of things-svc is valid, complete, and true."""

from pathlib import Path

import httpx
import pytest

import things_svc
from shared.web.auth import NOT_YOURS
from test_support.documents import (
    OF_NO_OPERATION,
    Json,
    codes_documented,
    codes_raised,
    flaws_of,
    operations,
)

PACKAGE = Path(things_svc.__file__).parent


@pytest.fixture
async def document(client: httpx.AsyncClient) -> Json:
    """As it is served, without a token."""
    answer = await client.get("/openapi.json", headers={"Authorization": ""})
    return dict(answer.json())


async def test_the_document_has_no_flaw(document: Json) -> None:
    assert flaws_of(document) == []


async def test_every_code_is_documented(document: Json) -> None:
    undocumented = codes_raised(PACKAGE) - codes_documented(document)

    assert undocumented - {NOT_YOURS} == OF_NO_OPERATION, "a thing need not belong to one user"


async def test_every_operation_names_its_scope(document: Json) -> None:
    for _, operation in operations(document):
        [scopes] = operation["security"][0].values()
        assert f"`{scopes[0]}`" in operation["description"]


async def test_every_request_example_is_accepted(client: httpx.AsyncClient, document: Json) -> None:
    def example(schema: str) -> Json:
        return dict(document["components"]["schemas"][schema]["examples"][0])

    added = await client.post("/v1/things", json=example("AddThingRequest"))
    address = added.headers["Location"]
    renamed = await client.post(f"{address}/renames", json=example("RenameThingRequest"))

    assert [added.status_code, renamed.status_code] == [201, 200]
    assert sum("requestBody" in operation for _, operation in operations(document)) == 2
