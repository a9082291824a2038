"""The reaction to order-cancelled: SettleThing, once for each message."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from shared.inbox.consumer import Consumer
from shared.messaging.messages import Metadata
from shared.messaging.records import IncomingRecord
from shared.runtime.identifiers import derive_id, new_id
from test_support.raw_records import event_record, ignore_letters
from things_svc import order_messages, worker
from things_svc.bootstrap import Resources
from things_svc.events import CODEC, ThingSettled

SAMPLE = Path(__file__).parents[1] / "unit/samples/thing-added.v1.json"

FIRST = CODEC.decode("thing-added", SAMPLE.read_bytes(), 1)


@pytest.fixture
def consumer(resources: Resources) -> Consumer:
    return worker.create_consumer(resources, ignore_letters)


def record(order_id: UUID) -> IncomingRecord:
    value = f'{{"order_id": "{order_id}", "unread": 1}}'
    return event_record(order_messages.TOPIC, "order-cancelled", order_id, value)


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
