"""A stream that was begun in an older form of its events: read, continued, and published again."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from shared.eventsourcing.codec import Codec, UnknownSchemaVersion
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.history import History, PastEvent
from shared.messaging import messages, wire
from shared.messaging.messages import PublicEvent
from shared.runtime.identifiers import new_id
from shared.runtime.relay_notifier import RelayNotifier
from test_support.counter.counter import TOPIC, counted, some_metadata, store_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedInSteps:
    """Counted as its second version has it."""

    counter_id: UUID
    total: int
    step: int


def in_steps(fields: dict[str, Any]) -> dict[str, Any]:
    return {"counter_id": fields["counter_id"], "total": fields["number"], "step": 1}


SECOND: Codec[CountedInSteps] = Codec({"counted": CountedInSteps}, {"counted": [in_steps]})


def publish(event: CountedInSteps) -> PublicEvent:
    return SECOND.to_public_event(event, topic=TOPIC, key=str(event.counter_id))


def second_store_of(pool: asyncpg.Pool) -> EventStore[CountedInSteps]:
    """The counters of a database, as a service of the next version reads and writes them."""
    return EventStore(
        pool,
        category="counter",
        source="test",
        codec=SECOND,
        publish=publish,
        relay_notifier=RelayNotifier(None),
    )


async def continued(pool: asyncpg.Pool) -> UUID:
    """A stream with an event of the first version and one of the second."""
    counter = new_id()
    await store_of(pool).append(counter, 0, counted(counter, 7), metadata=some_metadata())
    newer = CountedInSteps(counter_id=counter, total=9, step=2)
    await second_store_of(pool).append(counter, 1, [newer], metadata=some_metadata())
    return counter


async def test_both_versions_are_read_as_the_newer_one(pool: asyncpg.Pool) -> None:
    counter = await continued(pool)

    recorded = await second_store_of(pool).read(counter)

    assert [each.event for each in recorded] == [
        CountedInSteps(counter_id=counter, total=7, step=1),
        CountedInSteps(counter_id=counter, total=9, step=2),
    ]


async def test_each_event_says_which_version_it_has_inside_and_outside(pool: asyncpg.Pool) -> None:
    await continued(pool)

    private = await pool.fetch("SELECT schema_version, data FROM events ORDER BY version")
    public = await pool.fetch("SELECT headers FROM outbox ORDER BY position")

    assert [row["schema_version"] for row in private] == [1, 2]
    assert [json.loads(row["data"]).keys() for row in private] == [
        {"counter_id", "number"},
        {"counter_id", "total", "step"},
    ]
    assert [version_in(row["headers"]) for row in public] == [b"1", b"2"]


async def test_the_service_before_does_not_guess_at_what_came_after_it(pool: asyncpg.Pool) -> None:
    """Where both run, the one that knows less stops at such a stream, and at no other one."""
    newer, older = await continued(pool), new_id()
    await store_of(pool).append(older, 0, counted(older, 1), metadata=some_metadata())

    with pytest.raises(UnknownSchemaVersion):
        await store_of(pool).read(newer)
    assert len(await store_of(pool).read(older)) == 1


async def test_without_the_stored_version_the_older_event_is_unreadable(pool: asyncpg.Pool) -> None:
    """The negative control."""
    counter = await continued(pool)
    await pool.execute("UPDATE events SET schema_version = 2")

    with pytest.raises(ValueError, match="total"):
        await second_store_of(pool).read(counter)


async def test_history_is_published_anew_in_the_newer_version(
    pool: asyncpg.Pool, connection: asyncpg.Connection
) -> None:
    await continued(pool)

    history = History(connection, [second_store_of(pool)])
    past: list[PastEvent] = [event async for page in history.read_pages() for event in page]

    records = [event.record for event in past if event.record is not None]
    assert [dict(record.headers)[messages.SCHEMA_VERSION] for record in records] == [b"2", b"2"]
    assert [json.loads(record.value)["total"] for record in records] == [7, 9]


def version_in(packed: bytes) -> bytes:
    return dict(wire.unpack(packed))[messages.SCHEMA_VERSION]
