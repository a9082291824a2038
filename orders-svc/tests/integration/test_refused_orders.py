"""While new orders would wait too long for their decision, they are refused with 503."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from orders_svc.bootstrap import Resources, open_resources
from orders_svc.order import admission
from orders_svc.order.admission import WAITING_MIN
from orders_svc.order.commands import ConfirmOrder
from orders_svc.order.order import ORDER
from orders_svc.settings import OrdersSettings
from shared.eventsourcing.handler import handle
from shared.messaging.messages import Metadata
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Connection
from test_support.waits import HANGS_AFTER_SECONDS

IPHONE: dict[str, Any] = {"name": "iphone", "type": "phone", "origin": "bj", "price": "5388.88"}
CAUSE = Metadata(correlation_id=new_id(), causation_id=new_id())
LATER = timedelta(seconds=11)
"""Longer than an order may wait: a third of the order timeout."""
MUCH_LATER = timedelta(seconds=21)
"""Longer than an order counts that waits."""


@pytest.fixture
async def order(client: httpx.AsyncClient) -> dict[str, object]:
    """A valid order."""
    item = (await client.post("/v1/items", json=IPHONE)).json()["item_id"]
    return {"user_id": str(new_id()), "lines": [{"item_id": item, "quantity": 1}]}


@pytest.fixture
def other(order: dict[str, object]) -> dict[str, object]:
    """An order of another user."""
    return order | {"user_id": str(new_id())}


async def place(client: httpx.AsyncClient, order: object, count: int) -> list[UUID]:
    """So many orders; their ids."""
    answers = await asyncio.gather(*(client.post("/v1/orders", json=order) for _ in range(count)))
    assert {answer.status_code for answer in answers} == {201}
    return [UUID(answer.json()["order_id"]) for answer in answers]


async def observe(resources: Resources, *later: timedelta) -> None:
    """Decide on admission so much later than now."""
    for each in later:
        await resources.admission.observe(resources.pool, datetime.now(UTC) + each)


async def wait_too_long(
    client: httpx.AsyncClient, resources: Resources, order: dict[str, object], count: int
) -> list[UUID]:
    """So many orders that wait, of which none is decided for as long as one may wait."""
    placed = await place(client, order, count)
    await observe(resources, timedelta(), LATER)
    return placed


async def test_a_new_order_is_refused_while_earlier_ones_wait(
    client: httpx.AsyncClient, resources: Resources, order: dict[str, object]
) -> None:
    placed = await wait_too_long(client, resources, order, WAITING_MIN + 1)

    refused = await client.post("/v1/orders", json=order)
    read = await client.get(f"/v1/orders/{placed[0]}")
    cancelled = await client.post(
        f"/v1/orders/{placed[0]}/cancel", json={"reason": "takes-too-long"}
    )
    listed = await client.post("/v1/items", json=IPHONE)

    assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert int(refused.headers["Retry-After"]) > 0
    assert [each.status_code for each in (read, cancelled, listed)] == [200, 200, 201]
    count = "SELECT count(*) FROM streams WHERE category = 'order'"
    assert await resources.pool.fetchval(count) == len(placed), "a refused order is recorded"


async def test_only_users_with_many_waiting_orders_are_refused(
    client: httpx.AsyncClient,
    resources: Resources,
    order: dict[str, object],
    other: dict[str, object],
) -> None:
    await place(client, other, 3)
    await wait_too_long(client, resources, order, WAITING_MIN)

    assert (await client.post("/v1/orders", json=order)).status_code == 503
    assert (await client.post("/v1/orders", json=other)).status_code == 201


async def test_a_repeated_request_gets_its_stored_response_meanwhile(
    client: httpx.AsyncClient, resources: Resources, order: dict[str, object]
) -> None:
    first = await client.post("/v1/orders", json=order, headers={"Idempotency-Key": "one"})
    await wait_too_long(client, resources, order, WAITING_MIN)

    repeated = await client.post("/v1/orders", json=order, headers={"Idempotency-Key": "one"})
    other = await client.post("/v1/orders", json=order, headers={"Idempotency-Key": "two"})
    assert (repeated.status_code, repeated.content) == (201, first.content)
    assert other.status_code == 503

    await observe(resources, MUCH_LATER)
    again = await client.post("/v1/orders", json=order, headers={"Idempotency-Key": "two"})
    assert again.status_code == 201, "the refusal was stored under the key"


async def test_orders_are_accepted_again_when_earlier_ones_are_decided(
    client: httpx.AsyncClient, resources: Resources, order: dict[str, object]
) -> None:
    placed = await wait_too_long(client, resources, order, WAITING_MIN + 1)
    assert (await client.post("/v1/orders", json=order)).status_code == 503

    confirmation = ConfirmOrder(confirmed_at=datetime.now(UTC))
    await handle(resources.orders, ORDER, placed[0], confirmation, metadata=CAUSE)
    await observe(resources, LATER)

    assert (await client.post("/v1/orders", json=order)).status_code == 201


@pytest.mark.parametrize(
    ("count", "later"),
    [(WAITING_MIN + 1, timedelta()), (WAITING_MIN - 1, LATER), (WAITING_MIN + 1, MUCH_LATER)],
    ids=["not for long", "few", "for very long"],
)
async def test_an_order_is_accepted_while_others_are_pending(
    client: httpx.AsyncClient,
    resources: Resources,
    order: dict[str, object],
    count: int,
    later: timedelta,
) -> None:
    await place(client, order, count)
    await observe(resources, timedelta(), later)

    assert (await client.post("/v1/orders", json=order)).status_code == 201


async def test_what_is_decided_between_two_observations_is_counted(
    client: httpx.AsyncClient, resources: Resources, order: dict[str, object]
) -> None:
    """Also of orders that are too old at the later one, and of those that were placed meanwhile."""
    placed = await place(client, order, 3)
    await observe(resources, timedelta())
    placed += await place(client, order, 2)
    confirmation = ConfirmOrder(confirmed_at=datetime.now(UTC))
    for each in (placed[0], placed[3]):
        await handle(resources.orders, ORDER, each, confirmation, metadata=CAUSE)
    now = datetime.now(UTC)

    assert await resources.admission.count(resources.pool, now + MUCH_LATER) == (2, {})
    assert await resources.admission.count(resources.pool, now + MUCH_LATER) == (0, {})
    waiting = {UUID(str(order["user_id"])): 3}
    assert await resources.admission.count(resources.pool, now) == (0, waiting)


PARK = """
    INSERT INTO parked_streams (consumer, topic, stream_id, reason, parked_at)
    VALUES ('orders-worker', 'users.v1', $1, 'a test', now())
"""


async def test_the_orders_of_users_whose_messages_are_parked_do_not_count(
    client: httpx.AsyncClient,
    resources: Resources,
    order: dict[str, object],
    other: dict[str, object],
) -> None:
    await wait_too_long(client, resources, order, WAITING_MIN + 1)
    assert (await client.post("/v1/orders", json=order)).status_code == 503

    await resources.pool.execute(PARK, UUID(str(order["user_id"])))
    await observe(resources, LATER)

    for each in (order, other):
        assert (await client.post("/v1/orders", json=each)).status_code == 201


async def test_orders_that_only_the_read_model_does_not_know_count(
    client: httpx.AsyncClient, resources: Resources, order: dict[str, object]
) -> None:
    """No worker runs here: it could be the one that is behind."""
    await place(client, order, WAITING_MIN + 1)
    assert await resources.pool.fetchval("SELECT count(*) FROM order_summaries") == 0

    await observe(resources, timedelta(), LATER)

    assert (await client.post("/v1/orders", json=order)).status_code == 503


@pytest.fixture
async def impatient(database: str) -> AsyncIterator[Resources]:
    """Resources of an API whose orders may hardly wait, with few connections."""
    settings = OrdersSettings(
        database_url=database, database_connections_max=2, order_wait_seconds_max=0.5
    )
    async with open_resources(settings, "test") as resources:
        yield resources


async def test_an_api_observes_by_itself_while_requests_use_all_other_connections(
    client: httpx.AsyncClient,
    impatient: Resources,
    order: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "OBSERVE_SECONDS", 0.01)
    monkeypatch.setattr(admission, "WAITING_MIN", 0)
    observed, refused = asyncio.Event(), asyncio.Event()
    observe_once = impatient.admission.observe

    async def observe_and_note(connection: Connection, now: datetime) -> None:
        await observe_once(connection, now)
        observed.set()
        if impatient.admission.share is not None:
            refused.set()

    monkeypatch.setattr(impatient.admission, "observe", observe_and_note)
    async with impatient.admission.observing(), asyncio.timeout(HANGS_AFTER_SECONDS):
        await observed.wait()
        async with impatient.pool.acquire():
            with pytest.raises(TimeoutError):
                await impatient.pool.acquire(timeout=0.01)
            while not refused.is_set():
                await place(client, order, 1)
