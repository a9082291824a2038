"""Changes of a user over HTTP: credit limit, deletion, and the history that shows both."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from shared.eventsourcing.handler import handle
from shared.messaging.messages import Metadata
from shared.runtime.identifiers import new_id
from shared.web.field_types import FUTURE_MAX
from users_svc import confirmed_orders
from users_svc.bootstrap import Resources
from users_svc.commands import ReserveCredit
from users_svc.order_messages import OrderConfirmed
from users_svc.user import USER

JACK: dict[str, Any] = {
    "name": "Jack",
    "address": "BJ",
    "gender": "male",
    "birth_year": 1993,
    "credit_limit": "10000.00",
}

ADDED_BY_AN_OLDER_WORKER = "INSERT INTO confirmed_orders (user_id, order_id) VALUES ($1, $2)"

CHANGES = [
    ("POST", "/moves", {"address": "SH"}),
    ("PUT", "/credit-limit", {"credit_limit": "1.00"}),
    ("DELETE", "", None),
]


@pytest.fixture
async def jack(client: httpx.AsyncClient) -> str:
    """The address of a registered user."""
    location: str = (await client.post("/v1/users", json=JACK)).headers["Location"]
    return location


async def reserve(resources: Resources, user: str, amount: str) -> UUID:
    """What the worker does when an order was placed."""
    user_id, order_id = UUID(user.rpartition("/")[2]), new_id()
    command = ReserveCredit(user_id=user_id, order_id=order_id, amount=Decimal(amount))
    cause = Metadata(correlation_id=new_id(), causation_id=new_id())
    await handle(resources.users, USER, user_id, command, metadata=cause)
    return order_id


async def confirm(resources: Resources, user: str, order_id: UUID, ordered_at: datetime) -> None:
    """What the worker does when an order was confirmed."""
    async with resources.pool.acquire() as connection:
        order = OrderConfirmed(
            user_id=UUID(user.rpartition("/")[2]), order_id=order_id, ordered_at=ordered_at
        )
        await confirmed_orders.add(connection, [order])


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_the_credit_limit_is_changed(client: httpx.AsyncClient, jack: str) -> None:
    answer = await client.put(f"{jack}/credit-limit", json={"credit_limit": "20000.00"})

    assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')
    assert answer.json()["available_credit"] == "20000.00"


async def test_the_same_limit_changes_nothing(client: httpx.AsyncClient, jack: str) -> None:
    answer = await client.put(f"{jack}/credit-limit", json={"credit_limit": "10000.00"})

    assert (answer.status_code, answer.headers["ETag"]) == (200, '"1"')


async def test_a_key_is_stored_also_when_its_request_changed_nothing(
    client: httpx.AsyncClient, jack: str
) -> None:
    key = {"Idempotency-Key": "limit"}

    await client.put(f"{jack}/credit-limit", json={"credit_limit": "10000.00"}, headers=key)
    other = await client.put(f"{jack}/credit-limit", json={"credit_limit": "1.00"}, headers=key)

    assert code(other) == (422, "idempotency-key-reused")


async def test_a_limit_below_what_is_reserved_is_refused(
    client: httpx.AsyncClient, resources: Resources, jack: str
) -> None:
    await reserve(resources, jack, "5388.88")

    answer = await client.put(f"{jack}/credit-limit", json={"credit_limit": "5388.87"})

    assert code(answer) == (409, "limit-below-reserved")
    assert (await client.get(jack)).json()["credit_limit"] == "10000.00"


async def test_a_deleted_user_is_gone(client: httpx.AsyncClient, jack: str) -> None:
    answer = await client.delete(jack)

    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["ETag"] == '"2"'
    assert code(await client.get(jack)) == (410, "user-deleted")


async def test_a_repeated_deletion_gets_the_same_response(
    client: httpx.AsyncClient, jack: str
) -> None:
    key = {"Idempotency-Key": "delete-jack"}

    first = await client.delete(jack, headers=key)
    second = await client.delete(jack, headers=key)

    assert (first.status_code, second.status_code) == (204, 204)
    assert second.headers["Idempotency-Replayed"] == "true"


async def test_a_user_with_an_order_that_is_not_decided_is_not_deleted(
    client: httpx.AsyncClient, resources: Resources, jack: str
) -> None:
    order_id = await reserve(resources, jack, "1.00")
    assert code(await client.delete(jack)) == (409, "has-pending-orders")

    await confirm(resources, jack, order_id, datetime.now(UTC))
    assert (await client.delete(jack)).status_code == 204


async def test_a_deletion_is_effective_after_an_order_that_is_dated_ahead(
    client: httpx.AsyncClient, resources: Resources, jack: str
) -> None:
    """Or the order would not be counted, though confirmed orders stay counted."""
    ahead = datetime.now(UTC) + timedelta(minutes=4)
    await confirm(resources, jack, await reserve(resources, jack, "1.00"), ahead)

    await client.delete(jack)

    deleted = (await client.get(f"{jack}/events", params={"after": 2})).json()["events"][-1]
    assert deleted["type"] == "user-deleted"
    assert datetime.fromisoformat(deleted["data"]["effective_at"]) > ahead


async def test_the_time_of_an_order_that_an_older_worker_has_stored_is_estimated_ahead(
    client: httpx.AsyncClient, resources: Resources, jack: str
) -> None:
    ordered_at = datetime.now(UTC) + FUTURE_MAX
    order_id = await reserve(resources, jack, "1.00")
    await resources.pool.execute(ADDED_BY_AN_OLDER_WORKER, UUID(jack.rpartition("/")[2]), order_id)

    await client.delete(jack)

    deleted = (await client.get(f"{jack}/events", params={"after": 2})).json()["events"][-1]
    assert datetime.fromisoformat(deleted["data"]["effective_at"]) > ordered_at


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
async def test_a_deleted_user_cannot_be_changed(
    client: httpx.AsyncClient, jack: str, method: str, path: str, body: object
) -> None:
    await client.delete(jack)

    assert code(await client.request(method, jack + path, json=body)) == (410, "user-deleted")


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
async def test_an_unknown_user_cannot_be_changed(
    client: httpx.AsyncClient, method: str, path: str, body: object
) -> None:
    answer = await client.request(method, f"/v1/users/{uuid4()}{path}", json=body)

    assert code(answer) == (404, "unknown-user")


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
async def test_a_change_of_a_stale_version_is_refused(
    client: httpx.AsyncClient, jack: str, method: str, path: str, body: object
) -> None:
    await client.post(f"{jack}/moves", json={"address": "GZ"})

    answer = await client.request(method, jack + path, json=body, headers={"If-Match": '"1"'})

    assert code(answer) == (412, "version-conflict")
    assert (await client.get(jack)).headers["ETag"] == '"2"'


async def test_the_history_is_returned_as_it_was_recorded(
    client: httpx.AsyncClient, jack: str
) -> None:
    await client.post(f"{jack}/moves", json={"address": "SH"})

    page = (await client.get(f"{jack}/events")).json()

    registered, moved = page["events"]
    assert (registered["type"], moved["type"]) == ("user-registered", "user-moved")
    assert (registered["version"], moved["version"]) == (1, 2)
    assert registered["data"]["name"] == "Jack"
    assert moved["data"]["address"] == "SH"
    assert registered["actor"] == moved["actor"] == "clerk"
    assert page["next"] is None


async def test_the_history_is_returned_by_page(client: httpx.AsyncClient, jack: str) -> None:
    for address in ("SH", "GZ"):
        await client.post(f"{jack}/moves", json={"address": address})

    first = (await client.get(f"{jack}/events", params={"limit": 2})).json()
    query = {"limit": 2, "after": first["next"]}
    second = (await client.get(f"{jack}/events", params=query)).json()

    assert [event["version"] for event in first["events"] + second["events"]] == [1, 2, 3]
    assert second["next"] is None


async def test_an_unknown_user_has_no_history(client: httpx.AsyncClient) -> None:
    assert code(await client.get(f"/v1/users/{uuid4()}/events")) == (404, "unknown-user")
