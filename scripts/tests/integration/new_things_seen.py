"""In a copy with a service parcels, its command `weigh`, version 2 of the event of that, its
reaction `recall` and its read model `trail`: all work.

`test_new.py` runs it there.
"""

import asyncio
import json
from collections.abc import Iterator
from uuid import UUID

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from local_stack.hometown import HOMETOWN
from local_stack.stack_spec import StackContext
from local_stack.testing import bearer, throwaway_stack
from shared.messaging import wire
from shared.messaging.messages import SCHEMA_VERSION
from shared.runtime.identifiers import derive_id, new_id
from test_support.raw_records import event_headers
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.one_service import select_service
from test_support.system.traces import Step, edges_of, spans_of

JAEGER_SECONDS_MAX = 900
"""The first time on a machine, Jaeger may have to be built."""

READ_MILLISECONDS_MAX = 1000
"""For one batch, after which it is read again."""

REQUEST = Step("parcels-api", "POST /v1/parcels/{parcel_id}/weigh")
APPENDED = Step("parcels-api", "append parcel")
SENT = Step("parcels-relay", "send parcels.v1")
PROCESSED = Step("parcels-worker", "process parcels.v1")
EDGES = {(REQUEST, APPENDED), (APPENDED, SENT), (SENT, PROCESSED)}


@pytest.fixture(scope="module")
def context() -> Iterator[StackContext]:
    """No other service runs."""
    with throwaway_stack(select_service(HOMETOWN, "parcels")) as context:
        yield context


@pytest.fixture(scope="module")
def client(context: StackContext) -> Iterator[httpx.Client]:
    """A clerk's client."""
    address = f"http://{context.address('parcels-api')}"
    with httpx.Client(base_url=address, headers=bearer(context.folder, "clerk")) as client:
        yield client


def weigh_a_parcel(client: httpx.Client) -> str:
    """The address of a new parcel, which was weighed."""
    address: str = client.post("/v1/parcels", json={"name": "first"}).headers["Location"]
    assert client.post(f"{address}/weigh").status_code == 200
    return address


def demand_in_trail(client: httpx.Client, parcel: str, type_: str, version: int) -> None:
    """Wait until an event is the last one of a parcel in the read model."""
    answer = eventually(
        lambda: client.get(f"{parcel}/trail"),
        lambda got: got.is_success and got.json()["version"] == version,
        what="the row",
    )
    assert answer.json()["type"] == type_


def test_the_event_of_a_command_reaches_the_read_model(client: httpx.Client) -> None:
    """By the topic: the worker follows nothing else."""
    demand_in_trail(client, weigh_a_parcel(client), "parcel-weighed", version=2)


async def write_events(servers: str, topic: str, field: str, id_: UUID, *types: str) -> None:
    """Write the first events of a stream, as another service or an older release would."""
    value = json.dumps({field: str(id_)}).encode()
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for version, type_ in enumerate(types, 1):
            headers = wire.to_headers(event_headers(type_, id_, version))
            await producer.send_and_wait(topic, value, str(id_).encode(), headers=headers)


async def read_versions(servers: str, type_: str) -> set[str]:
    """Return the versions in which an event is in its topic, once there is one."""
    async with AIOKafkaConsumer(
        "parcels.v1", bootstrap_servers=servers, auto_offset_reset="earliest"
    ) as consumer:
        found: set[str] = set()
        while not found:
            batches = await consumer.getmany(timeout_ms=READ_MILLISECONDS_MAX)
            headers = [dict(each.headers) for batch in batches.values() for each in batch]
            found = {
                each[SCHEMA_VERSION].decode()
                for each in headers
                if each["ce_type"].decode() == type_
            }
    return found


def test_an_event_is_written_in_its_newest_version_and_read_in_each(
    context: StackContext, client: httpx.Client
) -> None:
    servers, parcel_id = context.address("kafka"), new_id()
    weigh_a_parcel(client)
    assert asyncio.run(read_versions(servers, "parcel-weighed")) == {"2"}

    assert event_headers("parcel-weighed", parcel_id)[SCHEMA_VERSION] == "1"
    asyncio.run(write_events(servers, "parcels.v1", "parcel_id", parcel_id, "parcel-weighed"))

    demand_in_trail(client, f"/v1/parcels/{parcel_id}", "parcel-weighed", version=1)


def test_a_message_leads_to_the_event_of_a_reaction(
    context: StackContext, client: httpx.Client
) -> None:
    servers, order_id = context.address("kafka"), new_id()
    types = ("order-confirmed", "order-cancelled")

    asyncio.run(write_events(servers, "orders.v1", "order_id", order_id, *types))

    parcel = f"/v1/parcels/{derive_id(order_id, 'parcel')}"
    demand_in_trail(client, parcel, "parcel-recalled", version=2)


def test_a_command_is_one_trace_up_to_the_read_model(
    context: StackContext, client: httpx.Client
) -> None:
    hometown = Hometown.of_run_folder(context.folder.path)
    eventually(hometown.jaeger_answers, bool, what="Jaeger", seconds_max=JAEGER_SECONDS_MAX)
    weigh_a_parcel(client)

    eventually(
        lambda: [edges_of(spans_of(each)) for each in hometown.traces_of_service("parcels-api")],
        lambda traces: any(edges >= EDGES for edges in traces),
        what="the trace",
    )
    hometown.http.close()
