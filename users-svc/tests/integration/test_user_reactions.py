"""Reactions of users-svc to orders: credit, once for each message; and the command `parked`."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import httpx
import pytest

from shared.eventsourcing.handler import handle, load
from shared.inbox.consumer import Consumer
from shared.messaging.messages import Metadata
from shared.messaging.records import IncomingRecord
from shared.runtime.identifiers import new_id
from test_support.raw_records import event_record, ignore_letters
from test_support.waits import HANGS_AFTER_SECONDS
from users_svc import confirmed_orders, worker
from users_svc.bootstrap import Resources
from users_svc.commands import RegisterUser
from users_svc.user import USER, require_active

PLACED = '{"order_id": "%s", "user_id": "%s", "amount": "30.00"}'
CONFIRMED = '{"order_id": "%s", "user_id": "%s", "ordered_at": "2016-11-11T00:00:01Z"}'


@pytest.fixture
def consumer(resources: Resources) -> Consumer:
    return worker.create_consumer(resources, ignore_letters)


def placed(order_id: UUID, value: str) -> IncomingRecord:
    return record(order_id, "order-placed", value, 1)


def record(order_id: UUID, type_: str, value: str, version: int) -> IncomingRecord:
    return event_record("orders.v1", type_, order_id, value, version)


async def registered(resources: Resources) -> UUID:
    user_id = new_id()
    command = RegisterUser(
        user_id=user_id,
        personal_data="sealed",
        address="BJ",
        gender="male",
        credit_limit=Decimal("100.00"),
        effective_at=datetime(2015, 12, 11, tzinfo=UTC),
    )
    cause = Metadata(correlation_id=new_id(), causation_id=new_id())
    await handle(resources.users, USER, user_id, command, metadata=cause)
    return user_id


async def test_a_placed_order_reserves_its_credit_once_however_often_it_is_delivered(
    resources: Resources, consumer: Consumer
) -> None:
    user_id, order_id = await registered(resources), new_id()
    record = placed(order_id, PLACED % (order_id, user_id))

    await consumer.take([record, record])
    await consumer.take([record])

    user = await load(resources.users, USER, user_id)
    assert user.version == 2
    assert require_active(user.state).reserved == {order_id: Decimal("30.00")}


async def confirmed_and(
    resources: Resources, consumer: Consumer, *then: str
) -> tuple[UUID, Mapping[UUID, datetime]]:
    """A user after the story of one order, and their orders that count as confirmed."""
    user_id, order_id = await registered(resources), new_id()
    story = [("order-placed", PLACED), ("order-confirmed", CONFIRMED)]
    for version, (type_, value) in enumerate([*story, *((type_, PLACED) for type_ in then)], 1):
        value %= (order_id, user_id)
        await consumer.take([record(order_id, type_, value, version)] * 2)
    return user_id, await confirmed_orders.list_by_user(resources.pool, user_id)


async def test_a_confirmed_order_keeps_its_credit_and_is_not_pending(
    resources: Resources, consumer: Consumer
) -> None:
    user_id, confirmed = await confirmed_and(resources, consumer)

    user = await load(resources.users, USER, user_id)
    assert require_active(user.state).reserved.keys() == confirmed.keys()
    assert list(confirmed.values()) == [datetime(2016, 11, 11, 0, 0, 1, tzinfo=UTC)]


async def test_a_cancelled_order_releases_its_credit(
    resources: Resources, consumer: Consumer
) -> None:
    user_id, confirmed = await confirmed_and(resources, consumer, "order-cancelled")

    user = await load(resources.users, USER, user_id)
    assert (len(require_active(user.state).reserved), len(confirmed)) == (0, 0)


def parked(database: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """The command, as a process."""
    return subprocess.run(
        [sys.executable, "-m", "users_svc", "parked", *words],
        env=os.environ | {"DATABASE_URL": database},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )


async def test_parked_streams_are_listed_and_redriven_by_command(
    resources: Resources, consumer: Consumer, database: str
) -> None:
    order_id = new_id()
    await consumer.take([placed(order_id, "garbage")])

    listed = parked(database, "list")
    refused = parked(database, "redrive", str(order_id), "--reason", "a test")

    assert (listed.returncode, listed.stderr) == (0, "")
    assert f"{order_id}  orders.v1  1 waiting" in listed.stdout
    assert refused.returncode == 1
    assert refused.stderr == "hometown: 1 of 1 streams are still parked\n"


async def test_a_parked_order_is_shown_with_the_kind_of_its_error_and_only_to_its_user(
    resources: Resources, consumer: Consumer, client: httpx.AsyncClient
) -> None:
    user_id, order_id = new_id(), new_id()
    await consumer.take([replace(placed(order_id, "garbage"), key=str(user_id).encode())])

    own = (await client.get(f"/v1/users/{user_id}/credits/{order_id}")).json()
    other = (await client.get(f"/v1/users/{new_id()}/credits/{order_id}")).json()

    assert own["parked"]["reason"] == "ValidationError"
    assert (own["decisions"], other["parked"]) == ([], None)


async def test_the_decisions_on_an_order_are_returned(
    resources: Resources, consumer: Consumer, client: httpx.AsyncClient
) -> None:
    user_id, order_id = await registered(resources), new_id()
    await consumer.take([placed(order_id, PLACED % (order_id, user_id))])
    await consumer.take([placed(new_id(), PLACED % (new_id(), user_id))])

    credit = (await client.get(f"/v1/users/{user_id}/credits/{order_id}")).json()

    [decision] = credit["decisions"]
    assert (decision["type"], decision["data"]["amount"]) == ("credit-reserved", "30.00")
    assert credit["parked"] is None
