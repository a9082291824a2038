"""Reactions to orders: a confirmed order adds a thing, once for each message."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from shared.eventsourcing.handler import load
from shared.inbox.consumer import Consumer
from shared.messaging import wire
from shared.messaging.records import IncomingRecord
from shared.messaging.wire import OutgoingRecord
from shared.runtime.identifiers import derive_id, new_id
from test_support.raw_records import event_headers
from things_svc import worker
from things_svc.bootstrap import Resources
from things_svc.thing import THING, Added


async def write_dead_letters(letters: Sequence[OutgoingRecord]) -> None:
    """No test reads dead letters here."""


@pytest.fixture
def consumer(resources: Resources) -> Consumer:
    return worker.create_consumer(resources, write_dead_letters)


def confirmed(order_id: UUID) -> IncomingRecord:
    # No order-placed comes before it here.
    headers = event_headers("order-confirmed", order_id, 2) | {"ce_previousversion": "0"}
    return IncomingRecord(
        topic="orders.v1",
        partition=0,
        offset=0,
        key=b"key",
        value=b'{"order_id": "%s", "unread": 1}' % str(order_id).encode(),
        headers=wire.to_headers(headers),
    )


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
