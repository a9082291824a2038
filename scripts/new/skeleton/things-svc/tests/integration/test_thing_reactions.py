"""Reactions to orders: a confirmed order adds a thing, once for each message."""

from uuid import UUID

import pytest

from shared.eventsourcing.handler import load
from shared.inbox.consumer import Consumer
from shared.messaging.records import IncomingRecord
from shared.runtime.identifiers import derive_id, new_id
from test_support.raw_records import event_record, ignore_letters
from things_svc import worker
from things_svc.bootstrap import Resources
from things_svc.thing import THING, Added


@pytest.fixture
def consumer(resources: Resources) -> Consumer:
    return worker.create_consumer(resources, ignore_letters)


def confirmed(order_id: UUID) -> IncomingRecord:
    value = f'{{"order_id": "{order_id}", "unread": 1}}'
    return event_record("orders.v1", "order-confirmed", order_id, value)


async def test_a_confirmed_order_adds_a_thing_once(
    resources: Resources, consumer: Consumer
) -> None:
    order_id = new_id()
    record = confirmed(order_id)

    await consumer.take([record, record])
    await consumer.take([record])

    thing_id = derive_id(order_id, "thing")
    found = await load(resources.things, THING, thing_id)
    assert found.version == 1
    assert found.state == Added(thing_id=thing_id, name=f"order {order_id}")


async def test_the_same_confirmation_in_another_message_changes_nothing(
    resources: Resources, consumer: Consumer
) -> None:
    """As after the loss of the consumer's own records of what it has read."""
    order_id = new_id()
    await consumer.take([confirmed(order_id)])
    await resources.pool.execute("DELETE FROM consumed_versions")

    await consumer.take([confirmed(order_id)])

    thing_id = derive_id(order_id, "thing")
    assert (await load(resources.things, THING, thing_id)).version == 1
