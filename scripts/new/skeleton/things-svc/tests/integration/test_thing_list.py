"""The read model of things: each message once, twice, and late; the list by page."""

from datetime import UTC, datetime
from uuid import UUID

import httpx

from shared.messaging.messages import Message
from shared.runtime.identifiers import new_id
from things_svc import thing_list
from things_svc.bootstrap import Resources
from things_svc.contract import CODEC, PublicThingEvent
from things_svc.events import ThingAdded, ThingRenamed

FIRST = UUID(int=1)
AT = datetime(2016, 11, 11, tzinfo=UTC)


def added(thing_id: UUID = FIRST) -> ThingAdded:
    return ThingAdded(thing_id=thing_id, name="first")


def renamed(name: str) -> ThingRenamed:
    return ThingRenamed(thing_id=FIRST, name=name)


def message(event: PublicThingEvent, version: int) -> Message:
    return Message(
        topic="things.v1",
        partition=0,
        offset=0,
        key=str(event.thing_id),
        event_id=new_id(),
        type=CODEC.get_name(event),
        schema_version=1,
        stream_id=event.thing_id,
        stream_version=version,
        previous_version=None,
        correlation_id=new_id(),
        time=AT,
        traceparent=None,
        data=CODEC.encode(event),
    )


async def follow(resources: Resources, *messages: Message) -> None:
    async with resources.pool.acquire() as connection:
        await thing_list.project(connection, messages)


async def test_a_rename_is_applied_once_and_not_backwards(resources: Resources) -> None:
    first, second = message(added(), 1), message(renamed("other"), 2)
    third = message(renamed("third"), 3)

    await follow(resources, first, first, second, third, second, first)

    [listed] = await thing_list.list_things(resources.pool, after=None, limit=10)
    assert (listed.thing_id, listed.name) == (FIRST, "third")


async def test_things_are_listed_by_page(client: httpx.AsyncClient, resources: Resources) -> None:
    ids = sorted(new_id() for _ in range(3))
    await follow(resources, *(message(added(thing_id), 1) for thing_id in ids))

    first = (await client.get("/v1/things", params={"limit": 2})).json()
    query = {"limit": 2, "after": first["next"]}
    second = (await client.get("/v1/things", params=query)).json()

    listed = [each["thing_id"] for each in first["things"] + second["things"]]
    assert listed == [str(thing_id) for thing_id in ids]
    assert second["next"] is None
