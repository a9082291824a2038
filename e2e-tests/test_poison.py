"""Poison records: each is dead-lettered by its reader, and everything else continues."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition

from shared.eventsourcing.event_store import get_partition
from shared.messaging.topics import TOPICS
from test_support.raw_records import NOT_UTF_8, event_headers, raw, write_each
from test_support.system.clients import Hometown, rfc3339
from test_support.system.eventually import eventually
from test_support.system.stack import Stack
from test_support.topic_records import read_to_end

GARBAGE = b"\x00\xff garbage"

Headers = list[tuple[str, bytes]]
Letters = Mapping[bytes, list[tuple[bytes | None, Headers]]]
"""Value and headers of dead letters, by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """A record with a key and a stream of its own, and the beginning of its dead-letter reason."""

    reason: str
    parks: bool
    """Whether its stream is parked."""
    value: bytes | None = b"{}"
    headers: Headers | None = None
    changes: Mapping[str, str] = field(default_factory=dict)
    key: str = field(default_factory=lambda: str(uuid4()))

    def headers_of(self, type_: str) -> Headers:
        """The configured headers, or valid ones with the configured changes."""
        if self.headers is not None:
            return self.headers
        good = event_headers(type_, self.key)
        return [(name, value.encode()) for name, value in {**good, **self.changes}.items()]


def all_poison() -> list[Poison]:
    return [
        Poison(reason="ValidationError: ", parks=True, value=GARBAGE),
        Poison(reason="malformed: no value", parks=False, value=None),
        Poison(reason="UnknownSchemaVersion: ", parks=True, changes={"ce_schemaversion": "9"}),
        Poison(reason="unknown type: unheard-of", parks=False, changes={"ce_type": "unheard-of"}),
        Poison(reason="malformed: no header", parks=False, headers=[]),
    ]


async def write(
    servers: str, topic: str, partition: int, type_: str, poison: list[Poison]
) -> dict[bytes, Headers]:
    """Write to the topic directly; returns the headers by key."""
    producer = AIOKafkaProducer(bootstrap_servers=servers)
    await producer.start()
    written: dict[bytes, Headers] = {}
    try:
        for each in poison:
            key, headers = each.key.encode(), each.headers_of(type_)
            await producer.send_and_wait(
                topic, each.value, key, partition=partition, headers=headers
            )
            written[key] = headers
    finally:
        await producer.stop()
    return written


async def letters_of(servers: str, topic: str, reader: str) -> Letters:
    """All records of a dead letter topic."""
    name = TOPICS[topic].dead_letters_of(reader)
    places = [TopicPartition(name, number) for number in range(TOPICS[topic].partitions)]
    found: dict[bytes, list[tuple[bytes | None, Headers]]] = {}
    for each in await read_to_end(servers, places):
        found.setdefault(each.key, []).append((each.value, list(each.headers)))
    return found


@pytest.mark.parametrize(
    ("topic", "reader", "type_"),
    [
        ("users.v1", "users-worker", "user-registered"),
        ("users.v1", "orders-worker", "credit-reserved"),
        ("items.v1", "orders-worker", "item-listed"),
        ("orders.v1", "users-worker", "order-placed"),
        ("orders.v1", "orders-worker", "order-placed"),
    ],
)
def test_trap_t11_poison_is_dead_lettered_unchanged_and_everything_else_continues(
    hometown: Hometown, stack: Stack, hour: datetime, topic: str, reader: str, type_: str
) -> None:
    servers = hometown.addresses["kafka"]
    user = hometown.register_user(name="Jack", address="BJ", gender="male", credit_limit="100.00")[
        "user_id"
    ]
    item = hometown.list_item(name="thing", type="phone", origin="BJ", price="10.00")["item_id"]
    before = hometown.place_order(user, [(item, 1)], hour)["order_id"]
    assert hometown.wait_for_decision(before)["status"] == "confirmed"

    poison = all_poison()
    partition = get_partition(topic, user)
    written = asyncio.run(write(servers, topic, partition, type_, poison))
    letters = eventually(
        lambda: asyncio.run(letters_of(servers, topic, reader)),
        lambda seen: set(written) <= set(seen),
        what="all poison in the dead letter topic",
    )

    for each in poison:
        [(value, headers)] = letters[each.key.encode()]
        asked = written[each.key.encode()]
        assert value == each.value
        assert headers[: len(asked)] == asked
        assert dict(headers)["dlq_reason"].decode().startswith(each.reason)
        assert dict(headers)["dlq_topic"].decode() == topic
    # A letter is written before the transaction that parks its stream.
    parked = eventually(
        lambda: stack.fetch(
            reader.removesuffix("-worker"),
            "SELECT stream_id::text FROM parked_streams WHERE stream_id::text = ANY($1)",
            [each.key for each in poison],
        ),
        lambda seen: len(seen) >= sum(each.parks for each in poison),
        what="streams parked",
    )
    assert {row["stream_id"] for row in parked} == {each.key for each in poison if each.parks}

    after = hometown.place_order(user, [(item, 1)], hour)["order_id"]
    assert hometown.wait_for_decision(after)["status"] == "confirmed"
    assert hometown.get_order(before)["status"] == "confirmed"
    assert hometown.get_user(user)["available_credit"] == "80.00"
    eventually(
        lambda: {order["order_id"] for order in orders_of(hometown, user)},
        lambda seen: seen == {before, after},
        what="both orders listed",
    )
    assert item in {each["item_id"] for each in items(hometown)}


READERS = [
    (topic.name, reader)
    for topic in TOPICS.values()
    for reader in ("users-worker", "orders-worker", "analytics-job")
    if reader in topic.readers
]


def test_any_bytes_are_dead_lettered_by_each_reader_and_orders_are_counted(
    hometown: Hometown, hour: datetime
) -> None:
    servers = hometown.addresses["kafka"]
    user, item = register_local(hometown, hour)
    origins = {}
    for topic in dict.fromkeys(topic for topic, _ in READERS):
        partition = get_partition(topic, item if topic == "items.v1" else user)
        strange = [
            raw(topic, partition, (NOT_UTF_8, b"x")),
            raw(topic, partition, key=None, value=None),
            raw(topic, partition, key=NOT_UTF_8, value=NOT_UTF_8, milliseconds=-1),
        ]
        offsets = asyncio.run(write_each(servers, strange))
        origins[topic] = {(partition, offset) for offset in offsets}

    order = hometown.place_order(user, [(item, 1)], hour)["order_id"]

    assert hometown.wait_for_decision(order)["status"] == "confirmed"
    eventually(
        lambda: hometown.hour(hour),
        lambda answer: answer["purchases"] == 1,
        what="the order counted",
    )
    for topic, reader in READERS:
        until_dead_lettered(servers, topic, reader, origins[topic])


def until_dead_lettered(
    servers: str, topic: str, reader: str, origins: set[tuple[int, int]]
) -> None:
    """Each of these records has one dead letter."""
    found = eventually(
        lambda: asyncio.run(origins_of(servers, topic, reader)),
        lambda seen: origins <= set(seen),
        what=f"the letters of {reader}",
    )
    assert [each for each in found if each in origins] == sorted(origins)


def register_local(hometown: Hometown, hour: datetime, name: str = "thing") -> tuple[str, str]:
    """The ids of a user and of an item from where the user lives in that hour."""
    since = rfc3339(hour)
    jack = {"name": "Jack", "address": "BJ", "gender": "male", "credit_limit": "100.00"}
    thing = {"name": name, "type": "phone", "origin": "BJ", "price": "10.00"}
    user = hometown.register_user(**jack, effective_at=since)["user_id"]
    item = hometown.list_item(**thing, effective_at=since)["item_id"]
    return user, item


async def origins_of(servers: str, topic: str, reader: str) -> list[tuple[int, int]]:
    """Partition and offset of the records that have a dead letter, in their order."""
    letters = await letters_of(servers, topic, reader)
    headers = [dict(headers) for those in letters.values() for _, headers in those]
    return sorted((int(each["dlq_partition"]), int(each["dlq_offset"])) for each in headers)


def test_an_item_is_counted_whatever_its_name_is(hometown: Hometown, hour: datetime) -> None:
    """In JSON the name has two backslashes; it is no escape."""
    user, item = register_local(hometown, hour, name=r"see \u0000 there")
    order = hometown.place_order(user, [(item, 1)], hour)["order_id"]
    assert hometown.wait_for_decision(order)["status"] == "confirmed"
    eventually(
        lambda: hometown.hour(hour), lambda answer: answer["purchases"] == 1, what="it counted"
    )

    hometown.cancel_order(order)

    eventually(
        lambda: hometown.hour(hour), lambda answer: answer["purchases"] == 0, what="it not counted"
    )


def orders_of(hometown: Hometown, user: str) -> list[dict[str, str]]:
    return list(hometown.list_orders(user_id=user, limit=100)["orders"])


def items(hometown: Hometown) -> list[dict[str, str]]:
    """The whole catalogue, page by page."""
    found, after = [], None
    while True:
        query = {"limit": 100} | ({"after": after} if after else {})
        page = hometown.list_items(**query)
        found += page["items"]
        after = page["next"]
        if after is None:
            return found
