"""Items over HTTP: listed, repriced, corrected, delisted; and the effect on new orders."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

IPHONE: dict[str, Any] = {
    "name": "iphone",
    "type": "phone",
    "origin": " bj ",
    "price": "5388.88",
    "effective_at": "2015-12-11T00:00:00Z",
}

CHANGES = [
    ("POST", "/price-changes", {"price": "4888.88"}),
    ("POST", "/origin-corrections", {"origin": "SH"}),
    ("DELETE", "", None),
]


@pytest.fixture
async def iphone(client: httpx.AsyncClient) -> str:
    """The address of a listed item."""
    location: str = (await client.post("/v1/items", json=IPHONE)).headers["Location"]
    return location


async def order(client: httpx.AsyncClient, item: str) -> httpx.Response:
    lines = [{"item_id": item.rpartition("/")[2], "quantity": 3}]
    return await client.post("/v1/orders", json={"user_id": str(uuid4()), "lines": lines})


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_an_item_is_listed(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/items", json=IPHONE)

    assert answer.status_code == 201
    listed = {"item_id": None, "delisted": False, "origin": "BJ"}
    shown = {name: value for name, value in IPHONE.items() if name != "effective_at"}
    assert answer.json() | {"item_id": None} == shown | listed
    assert (await client.get(answer.headers["Location"])).json() == answer.json()


@pytest.mark.parametrize(
    "wrong",
    [
        {"price": "-1.00"},
        {"price": 5388.88},
        {"price": "1.001"},
        {"origin": ""},
        {"name": " "},
        {"effective_at": "2999-01-01T00:00:00Z"},
        {"surprise": 1},
    ],
    ids=str,
)
async def test_a_malformed_listing_is_refused(
    client: httpx.AsyncClient, wrong: dict[str, object]
) -> None:
    assert code(await client.post("/v1/items", json=IPHONE | wrong)) == (422, "invalid-request")


async def test_a_new_price_is_that_of_new_orders_only(
    client: httpx.AsyncClient, iphone: str
) -> None:
    before = (await order(client, iphone)).headers["Location"]
    answer = await client.post(f"{iphone}/price-changes", json={"price": "4888.88"})
    after = (await order(client, iphone)).json()

    assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')
    assert answer.json()["price"] == "4888.88"
    assert (await client.get(before)).json()["lines"][0]["unit_price"] == "5388.88"
    assert after["lines"][0]["unit_price"] == "4888.88"


async def test_an_origin_is_corrected(client: httpx.AsyncClient, iphone: str) -> None:
    correction = {"origin": "sh", "effective_at": "2016-01-01T00:00:00Z"}

    answer = await client.post(f"{iphone}/origin-corrections", json=correction)

    assert (answer.status_code, answer.json()["origin"]) == (200, "SH")


async def test_a_change_to_the_present_value_is_refused(
    client: httpx.AsyncClient, iphone: str
) -> None:
    price = await client.post(f"{iphone}/price-changes", json={"price": "5388.88"})
    origin = await client.post(f"{iphone}/origin-corrections", json={"origin": "BJ"})

    assert code(price) == (409, "same-price")
    assert code(origin) == (409, "same-origin")


async def test_a_delisted_item_is_read_and_not_ordered(
    client: httpx.AsyncClient, iphone: str
) -> None:
    answer = await client.delete(iphone)

    assert (answer.status_code, answer.headers["ETag"]) == (204, '"2"')
    assert (await client.get(iphone)).json()["delisted"]
    assert code(await order(client, iphone)) == (409, "item-delisted")


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
async def test_a_delisted_item_is_not_changed(
    client: httpx.AsyncClient, iphone: str, method: str, path: str, body: object
) -> None:
    await client.delete(iphone)

    assert code(await client.request(method, iphone + path, json=body)) == (409, "item-delisted")


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
async def test_an_unknown_item_is_not_changed(
    client: httpx.AsyncClient, method: str, path: str, body: object
) -> None:
    answer = await client.request(method, f"/v1/items/{uuid4()}{path}", json=body)

    assert code(answer) == (404, "unknown-item")


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
async def test_a_change_of_a_stale_version_is_refused(
    client: httpx.AsyncClient, iphone: str, method: str, path: str, body: object
) -> None:
    await client.post(f"{iphone}/price-changes", json={"price": "1.00"})

    answer = await client.request(method, iphone + path, json=body, headers={"If-Match": '"1"'})

    assert code(answer) == (412, "version-conflict")


async def test_an_unknown_item_is_not_found(client: httpx.AsyncClient) -> None:
    assert code(await client.get(f"/v1/items/{uuid4()}")) == (404, "unknown-item")


async def test_the_history_is_returned_by_page_as_it_was_recorded(
    client: httpx.AsyncClient, iphone: str
) -> None:
    await client.post(f"{iphone}/price-changes", json={"price": "1.00"})
    await client.delete(iphone)

    first = (await client.get(f"{iphone}/events", params={"limit": 2})).json()
    query = {"limit": 2, "after": first["next"]}
    second = (await client.get(f"{iphone}/events", params=query)).json()

    events = first["events"] + second["events"]
    assert [each["type"] for each in events] == ["item-listed", "item-repriced", "item-delisted"]
    assert [each["version"] for each in events] == [1, 2, 3]
    assert events[1]["data"]["price"] == "1.00"
    assert second["next"] is None


async def test_an_unknown_item_has_no_history_and_an_order_is_no_item(
    client: httpx.AsyncClient, iphone: str
) -> None:
    """A caller that can read items cannot read orders."""
    order_id = (await order(client, iphone)).json()["order_id"]

    for unknown in (order_id, uuid4()):
        assert code(await client.get(f"/v1/items/{unknown}/events")) == (404, "unknown-item")
