"""The last event of each thing: each message once, twice, and late; one of them over HTTP."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import httpx

from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.messaging.messages import Message
from shared.runtime.identifiers import new_id
from things_svc import contract, thing_digest
from things_svc.bootstrap import Resources
from things_svc.events import CODEC

SAMPLE = Path(__file__).parents[1] / "unit/samples/thing-added.v1.json"

FIRST = CODEC.decode("thing-added", SAMPLE.read_bytes(), 1)
PUBLIC = contract.publish(FIRST)
ADDRESS = f"/v1/things/{FIRST.thing_id}/digest"


def message(version: int) -> Message:
    return Message(
        topic=PUBLIC.topic,
        partition=0,
        offset=0,
        key=PUBLIC.key,
        event_id=new_id(),
        type=PUBLIC.type,
        schema_version=PUBLIC.schema_version,
        stream_id=FIRST.thing_id,
        stream_version=version,
        previous_version=None,
        correlation_id=new_id(),
        time=datetime(2016, 11, 11, version, tzinfo=UTC),
        traceparent=None,
        data=PUBLIC.value,
    )


async def test_an_event_is_applied_once_and_not_backwards(
    client: httpx.AsyncClient, resources: Resources
) -> None:
    first, second = message(1), message(2)

    async with resources.pool.acquire() as connection:
        await thing_digest.project(connection, [first, first, second, first])

    assert (await client.get(ADDRESS)).json() == {
        "type": "thing-added",
        "at": "2016-11-11T02:00:00Z",
        "version": 2,
    }


async def test_an_unknown_thing_is_not_found(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"/v1/things/{uuid4()}/digest")

    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-thing")


async def test_a_caller_who_is_limited_is_refused(
    transport: httpx.ASGITransport, issuing: RunFolder
) -> None:
    headers = bearer(issuing, "user", str(uuid4()))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://things", headers=headers
    ) as user:
        assert (await user.get(ADDRESS)).status_code == 403
