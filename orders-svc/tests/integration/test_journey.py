"""The journey of an order with a stand-in for analytics, which has read every record."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import httpx
import pytest

from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from orders_svc import api
from orders_svc.bootstrap import Resources
from orders_svc.order.commands import CancelOrder, ConfirmOrder, OrderCommand, PlaceOrder
from orders_svc.order.events import OrderLine
from orders_svc.order.order import ORDER
from orders_svc.service_clients import ServiceClients
from shared.eventsourcing.handler import handle
from shared.messaging.messages import Metadata
from shared.runtime.identifiers import new_id
from shared.web.auth import RequestAuthenticator

ORDERED_AT = datetime(2016, 11, 11, tzinfo=UTC)
READING = {
    "batch_id": 7,
    "committed_at": "2016-11-11T00:00:03Z",
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
    "watermark": None,
}

HAS_BEEN_PUBLISHED = """
    INSERT INTO publications (stream_id, version, partition, record_offset)
    SELECT stream_id, version, 0, position FROM events WHERE stream_id = $1
"""

CONFIRM = ConfirmOrder(confirmed_at=ORDERED_AT)
CANCEL = CancelOrder(reason="changed-my-mind")


def analytics_has_read(request: httpx.Request) -> httpx.Response:
    """It returns a reading of every record, whether the record counts or not."""
    return httpx.Response(200, json=READING if "readings" in request.url.path else {"cells": []})


async def story(resources: Resources, *commands: OrderCommand) -> UUID:
    """An order after these commands, with every event in its topic."""
    order_id = new_id()
    line = OrderLine(item_id=new_id(), quantity=1, unit_price=Decimal("1.00"))
    place = PlaceOrder(order_id=order_id, user_id=new_id(), lines=(line,), ordered_at=ORDERED_AT)
    cause = Metadata(correlation_id=new_id(), causation_id=new_id())
    for command in (place, *commands):
        await handle(resources.orders, ORDER, order_id, command, metadata=cause)
    await resources.pool.execute(HAS_BEEN_PUBLISHED, order_id)
    return order_id


async def hops(
    resources: Resources,
    authenticator: RequestAuthenticator,
    issuing: RunFolder,
    order_id: UUID,
) -> list[dict[str, Any]]:
    analytics = httpx.AsyncClient(transport=httpx.MockTransport(analytics_has_read))
    clients = ServiceClients(analytics, users_url=None, analytics_url="http://analytics")
    transport = httpx.ASGITransport(api.create_app(resources, authenticator, clients))
    async with (
        analytics,
        httpx.AsyncClient(
            transport=transport, base_url="http://orders", headers=bearer(issuing, "clerk")
        ) as client,
    ):
        answer = await client.get(f"/v1/orders/{order_id}/journey")
    found: list[dict[str, Any]] = answer.json()["hops"]
    return found


@pytest.mark.parametrize(
    ("commands", "counted"),
    [
        ([], []),
        ([CANCEL], []),
        ([CONFIRM], ["order-confirmed"]),
        ([CONFIRM, CANCEL], ["order-confirmed", "order-cancelled"]),
    ],
    ids=["pending", "cancelled while pending", "confirmed", "cancelled after it was confirmed"],
)
async def test_only_an_order_that_was_confirmed_is_counted(
    resources: Resources,
    authenticator: RequestAuthenticator,
    issuing: RunFolder,
    commands: list[OrderCommand],
    counted: list[str],
) -> None:
    order_id = await story(resources, *commands)

    found = await hops(resources, authenticator, issuing, order_id)

    assert [hop["type"] for hop in found if hop["hop"] == "counted"] == counted
