"""Reactions of orders-svc to users: an order is decided, once for each message; parked streams."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import httpx
import pytest

from orders_svc import worker
from orders_svc.bootstrap import Resources
from orders_svc.order.commands import PlaceOrder
from orders_svc.order.events import OrderLine
from orders_svc.order.order import ORDER, Confirmed, require_placed
from shared.eventsourcing.handler import handle, load
from shared.inbox.consumer import Consumer
from shared.messaging.messages import Metadata
from shared.messaging.records import IncomingRecord
from shared.runtime.identifiers import new_id
from test_support.raw_records import event_record, ignore_letters
from test_support.waits import HANGS_AFTER_SECONDS


@pytest.fixture
def consumer(resources: Resources) -> Consumer:
    return worker.create_consumer(resources, ignore_letters)


def reserved(user_id: UUID, order_id: UUID) -> IncomingRecord:
    return event_record("users.v1", "credit-reserved", user_id, f'{{"order_id": "{order_id}"}}')


async def placed(resources: Resources) -> UUID:
    order_id = new_id()
    command = PlaceOrder(
        order_id=order_id,
        user_id=new_id(),
        lines=(OrderLine(item_id=new_id(), quantity=1, unit_price=Decimal("1.00")),),
        ordered_at=datetime(2016, 11, 11, tzinfo=UTC),
    )
    cause = Metadata(correlation_id=new_id(), causation_id=new_id())
    await handle(resources.orders, ORDER, order_id, command, metadata=cause)
    return order_id


def parked(database: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """The command, as a process."""
    return subprocess.run(
        [sys.executable, "-m", "orders_svc", "parked", *words],
        env=os.environ | {"DATABASE_URL": database},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )


async def test_an_order_with_credit_is_confirmed_once_however_often_the_message_is_delivered(
    resources: Resources, consumer: Consumer
) -> None:
    order_id = await placed(resources)
    record = reserved(new_id(), order_id)

    await consumer.take([record, record])
    await consumer.take([record])

    order = await load(resources.orders, ORDER, order_id)
    assert order.version == 2
    assert isinstance(order.state, Confirmed)


async def test_credit_for_an_unknown_order_parks_its_stream(
    resources: Resources, consumer: Consumer, database: str
) -> None:
    user_id = new_id()

    await consumer.take([reserved(user_id, new_id())])

    listed = parked(database, "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert f"{user_id}  users.v1  1 waiting" in listed.stdout
    assert "NotFound: " in listed.stdout


async def test_a_journey_shows_that_the_credit_decision_is_parked(
    resources: Resources, consumer: Consumer, client: httpx.AsyncClient
) -> None:
    order_id = await placed(resources)
    order = require_placed((await load(resources.orders, ORDER, order_id)).state)
    await consumer.take([reserved(order.user_id, new_id())])

    journey = (await client.get(f"/v1/orders/{order_id}/journey")).json()

    [parked_hop] = [hop for hop in journey["hops"] if hop["hop"] == "parked"]
    assert parked_hop["process"] == "orders-worker"
    assert parked_hop["reason"] == "NotFound"
