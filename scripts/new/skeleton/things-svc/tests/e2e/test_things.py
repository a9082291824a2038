"""things-svc with real servers: from a command to its event, its trace and its metric."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from local_stack.hometown import HOMETOWN
from local_stack.stack_spec import StackContext
from local_stack.testing import bearer, throwaway_stack
from shared.messaging import wire
from shared.messaging.topics import TOPICS
from shared.runtime.identifiers import derive_id, new_id
from test_support.raw_records import event_headers
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.one_service import select_service
from test_support.system.traces import Step, edges_of, spans_of

JAEGER_SECONDS_MAX = 900
"""The first time on a machine, Jaeger may have to be built."""

REQUEST = Step("things-api", "POST /v1/things")
APPENDED = Step("things-api", "append thing")
SENT = Step("things-relay", "send things.v1")
PROCESSED = Step("things-worker", "process things.v1")
EDGES = {(REQUEST, APPENDED), (APPENDED, SENT), (SENT, PROCESSED)}
"""(parent, child), from the request to the list of things."""


@pytest.fixture(scope="module")
def context() -> Iterator[StackContext]:
    """No other service runs."""
    with throwaway_stack(select_service(HOMETOWN, "things")) as context:
        yield context


@pytest.fixture(scope="module")
def client(context: StackContext) -> Iterator[httpx.Client]:
    """A clerk's client."""
    address = f"http://{context.address('things-api')}"
    with httpx.Client(base_url=address, headers=bearer(context.folder, "clerk")) as client:
        yield client


def add_thing(client: httpx.Client) -> str:
    """The id of a new thing."""
    thing_id: str = client.post("/v1/things", json={"name": "first"}).json()["thing_id"]
    return thing_id


@pytest.fixture(scope="module")
def added(client: httpx.Client) -> str:
    """The id of a thing."""
    return add_thing(client)


async def read_records(servers: str, topic: str) -> dict[bytes, bytes]:
    """The last value of each key."""
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        places = [TopicPartition(topic, number) for number in range(TOPICS[topic].partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        found: dict[bytes, bytes] = {}
        while any([await consumer.position(place) < ends[place] for place in places]):
            for batch in (await consumer.getmany(timeout_ms=200)).values():
                found |= {record.key: record.value for record in batch}
        return found
    finally:
        await consumer.stop()


async def confirm_order(servers: str, order_id: str) -> None:
    """Write what orders-svc writes."""
    headers = wire.to_headers(event_headers("order-confirmed", order_id))
    producer = AIOKafkaProducer(bootstrap_servers=servers)
    await producer.start()
    try:
        value = b'{"order_id": "%s"}' % order_id.encode()
        await producer.send_and_wait("orders.v1", value, b"key", headers=headers)
    finally:
        await producer.stop()


def test_a_command_leads_to_an_event_on_its_topic(context: StackContext, added: str) -> None:
    found = eventually(
        lambda: asyncio.run(read_records(context.address("kafka"), "things.v1")),
        lambda records: added.encode() in records,
        what="the event",
    )

    assert b'"first"' in found[added.encode()]


def wait_until_listed(client: httpx.Client, thing: dict[str, str]) -> None:
    def listed() -> list[dict[str, Any]]:
        return list(client.get("/v1/things").json()["things"])

    eventually(listed, lambda things: thing in things, what="the list")


def test_what_was_added_is_listed(client: httpx.Client, added: str) -> None:
    wait_until_listed(client, {"thing_id": added, "name": "first"})


def test_a_rename_counts_and_a_refused_one_does_not(client: httpx.Client) -> None:
    thing_id = add_thing(client)

    statuses = [
        client.post(f"/v1/things/{thing_id}/renames", json={"name": "second"}).status_code
        for _ in range(2)
    ]

    assert statuses == [200, 409]
    assert "hometown_things_renames_total 1.0" in client.get("/metrics").text.splitlines()


def test_a_confirmed_order_adds_a_thing(context: StackContext, client: httpx.Client) -> None:
    order_id = new_id()
    thing = {"thing_id": str(derive_id(order_id, "thing")), "name": f"order {order_id}"}

    asyncio.run(confirm_order(context.address("kafka"), str(order_id)))

    answer = eventually(
        lambda: client.get(f"/v1/things/{thing['thing_id']}"),
        lambda got: got.is_success,
        what="the thing",
    )
    assert answer.json()["name"] == thing["name"]
    wait_until_listed(client, thing)


def test_a_command_is_one_trace_up_to_the_read_model(
    context: StackContext, client: httpx.Client
) -> None:
    hometown = Hometown.of_run_folder(context.folder.path)
    eventually(hometown.jaeger_answers, bool, what="Jaeger", seconds_max=JAEGER_SECONDS_MAX)
    # Spans that were made minutes before Jaeger was there are gone.
    add_thing(client)

    eventually(
        lambda: [edges_of(spans_of(each)) for each in hometown.traces_of_service("things-api")],
        lambda traces: any(edges >= EDGES for edges in traces),
        what="the trace",
    )
    hometown.http.close()
