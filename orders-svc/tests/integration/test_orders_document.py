"""The OpenAPI document of orders-svc is valid, complete, and true."""

from pathlib import Path
from typing import Any

import httpx
import pytest

import orders_svc
from test_support.documents import (
    OF_NO_OPERATION,
    Json,
    codes_documented,
    codes_raised,
    flaws_of,
    operations,
)

PACKAGE = Path(orders_svc.__file__).parent


@pytest.fixture
async def document(client: httpx.AsyncClient) -> Json:
    """As it is served, without a token."""
    answer = await client.get("/openapi.json", headers={"Authorization": ""})
    return dict(answer.json())


async def test_the_document_has_no_flaw(document: Json) -> None:
    assert flaws_of(document) == []


async def test_every_code_is_documented(document: Json) -> None:
    assert codes_raised(PACKAGE) - codes_documented(document) == OF_NO_OPERATION


async def test_a_code_that_no_operation_lists_is_seen(document: Json) -> None:
    del document["paths"]["/v1/orders/{order_id}/cancel"]

    assert codes_raised(PACKAGE) - codes_documented(document) > OF_NO_OPERATION


async def test_every_request_example_is_accepted(client: httpx.AsyncClient, document: Json) -> None:
    def example(schema: str) -> Any:
        return document["components"]["schemas"][schema]["examples"][0]

    listed = await client.post("/v1/items", json=example("ListItemRequest"))
    item = listed.headers["Location"]
    repriced = await client.post(f"{item}/price-changes", json=example("RepriceItemRequest"))
    correction = example("CorrectItemOriginRequest")
    corrected = await client.post(f"{item}/origin-corrections", json=correction)
    order = example("PlaceOrderRequest")
    order["lines"][0]["item_id"] = listed.json()["item_id"]
    placed = await client.post("/v1/orders", json=order)
    cancelled = await client.post(
        f"{placed.headers['Location']}/cancel", json=example("CancelOrderRequest")
    )

    answers = (listed, repriced, corrected, placed, cancelled)
    assert [each.status_code for each in answers] == [201, 200, 200, 201, 200]
    assert sum("requestBody" in operation for _, operation in operations(document)) == 5
