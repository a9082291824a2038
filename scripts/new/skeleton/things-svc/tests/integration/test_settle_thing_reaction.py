"""The reaction to order-cancelled: SettleThing, once for each message."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from shared.inbox.consumer import Consumer
from shared.messaging import wire
from shared.messaging.messages import Metadata
from shared.messaging.records import IncomingRecord
from shared.messaging.wire import OutgoingRecord
from shared.runtime.identifiers import derive_id, new_id
from test_support.raw_records import event_headers
from things_svc import order_messages, worker
from things_svc.bootstrap import Resources
from things_svc.events import CODEC, ThingSettled

SAMPLE = Path(__file__).parents[1] / "unit/samples/thing-added.v1.json"

FIRST = CODEC.decode("thing-added", SAMPLE.read_bytes(), 1)


async def write_dead_letters(letters: Sequence[OutgoingRecord]) -> None:
    """No test reads dead letters here."""


@pytest.fixture
def consumer(resources: Resources) -> Consumer:
    return worker.create_consumer(resources, write_dead_letters)


def record(order_id: UUID) -> IncomingRecord:
    return IncomingRecord(
        topic=order_messages.TOPIC,
        partition=0,
        offset=0,
        key=b"key",
        value=b'{"order_id": "%s", "unread": 1}' % str(order_id).encode(),
        headers=wire.to_headers(event_headers("order-cancelled", order_id)),
    )


async def test_its_event_is_recorded_once(resources: Resources, consumer: Consumer) -> None:
    order_id = new_id()
    stream_id = derive_id(order_id, "thing")
    first = replace(FIRST, thing_id=stream_id)
    metadata = Metadata(correlation_id=new_id(), causation_id=new_id())
    await resources.things.append(stream_id, 0, [first], metadata=metadata)

    await consumer.take([record(order_id)] * 2)

    [_, recorded] = await resources.things.read(stream_id)
    assert recorded.event == ThingSettled(thing_id=first.thing_id)


async def test_nothing_happens_where_there_is_no_thing(
    resources: Resources, consumer: Consumer
) -> None:
    order_id = new_id()

    await consumer.take([record(order_id)])

    assert await resources.things.read(derive_id(order_id, "thing")) == []
    assert await resources.pool.fetchval("SELECT count(*) FROM consumed_versions") == 1
    assert await resources.pool.fetchval("SELECT count(*) FROM parked_streams") == 0
