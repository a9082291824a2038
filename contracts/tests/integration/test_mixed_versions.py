"""Services of different versions exchange messages: real stores write them, real workers take them.

A writer of another version is a store with a codec of its own: what it appends leaves through the
same outbox, with the same headers, as anything else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg
import pytest

import orders_svc.worker
import users_svc.worker
from contracts.contract_files import ROOT, sample_path
from orders_svc import user_messages
from orders_svc.bootstrap import Resources as Orders
from orders_svc.order.commands import PlaceOrder
from orders_svc.order.events import OrderLine
from orders_svc.order.order import ORDER, require_placed
from shared.eventsourcing.codec import FIRST_VERSION, Codec
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.handler import handle, load
from shared.inbox import parked
from shared.inbox.consumer import Consumer
from shared.inbox.parked import OperatorAction
from shared.inbox.redrive import redrive
from shared.messaging.messages import Message, Metadata, PublicEvent, StreamKey
from shared.messaging.records import IncomingRecord
from shared.outbox.outbox import OutboxRow
from shared.runtime.identifiers import new_id
from shared.runtime.relay_notifier import RelayNotifier
from test_support.counter.counted_records import as_read, record
from test_support.raw_records import ignore_letters
from users_svc import order_messages
from users_svc.bootstrap import Resources as Users
from users_svc.commands import RegisterUser
from users_svc.user import USER, require_active

AMOUNT = Decimal("30.00")
THEN = datetime(2016, 11, 11, tzinfo=UTC)
WARRANT = OperatorAction(by="jack", reason="the reader was upgraded")

SENT = """
    SELECT position, topic, partition, key, value, headers, traceparent
    FROM outbox
    WHERE position($1::bytea IN headers) > 0
    ORDER BY position
"""


def some_cause() -> Metadata:
    return Metadata(correlation_id=new_id(), causation_id=new_id())


async def written(
    pool: asyncpg.Pool, topic: str, codec: Codec[Any], event: Any
) -> list[IncomingRecord]:
    """What a service whose contract is `codec` sends of one event on a stream of its own."""

    def publish(event: Any) -> PublicEvent:
        return codec.to_public_event(event, topic=topic, key=str(event.user_id))

    store: EventStore[Any] = EventStore(
        pool,
        category="order" if topic == "orders.v1" else "user",
        source="another version",
        codec=codec,
        publish=publish,
        relay_notifier=RelayNotifier(None),
    )
    stream_id = event.order_id if topic == "orders.v1" else event.user_id
    await store.append(stream_id, 0, [event], metadata=some_cause())
    async with pool.acquire() as connection:
        rows = await connection.fetch(SENT, str(stream_id).encode(), record_class=OutboxRow)
    return [as_read(row) for row in rows]


async def reasons(consumer: Consumer, pool: asyncpg.Pool) -> Sequence[str]:
    return [stream.reason for stream in await parked.list_streams(pool, consumer.name)]


# What other versions of orders-svc say of a placed order, and other versions of users-svc read.


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    order_id: UUID
    user_id: UUID
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedWithChannel(Placed):
    """Grown by a field."""

    channel: str = "web"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedWithTotal(Placed):
    """`amount` is on its way to be called `total`: both are written for as long as need be."""

    total: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRenamed:
    """An incompatible change: the old name is gone."""

    order_id: UUID
    user_id: UUID
    total: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedInCurrency(Placed):
    """Version 2: an amount means nothing any more without its currency."""

    currency: str


def in_yuan(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "currency": "CNY"}


FIRST: Codec[Any] = Codec({"order-placed": Placed})
SECOND: Codec[Any] = Codec({"order-placed": PlacedInCurrency}, {"order-placed": [in_yuan]})


async def registered(users: Users) -> UUID:
    user_id = new_id()
    command = RegisterUser(
        user_id=user_id,
        personal_data="sealed",
        address="BJ",
        gender="male",
        credit_limit=Decimal("100.00"),
        effective_at=THEN,
    )
    await handle(users.users, USER, user_id, command, metadata=some_cause())
    return user_id


async def reserved(users: Users, user_id: UUID) -> dict[UUID, Decimal]:
    return dict(require_active((await load(users.users, USER, user_id)).state).reserved)


def users_worker(users: Users) -> Consumer:
    return users_svc.worker.create_consumer(users, ignore_letters)


@pytest.mark.parametrize(
    ("class_", "more"),
    [
        (Placed, {}),
        (PlacedWithChannel, {}),
        (PlacedWithChannel, {"channel": "shop"}),
        (PlacedWithTotal, {"total": AMOUNT}),
    ],
    ids=["writer of fewer fields", "new field", "new field with a value", "renamed the right way"],
)
async def test_users_svc_takes_orders_of_services_before_and_after_it(
    users: Users, orders: Orders, class_: type[Any], more: dict[str, Any]
) -> None:
    user_id, order_id = await registered(users), new_id()
    event = class_(order_id=order_id, user_id=user_id, amount=AMOUNT, **more)

    records = await written(orders.pool, "orders.v1", Codec({"order-placed": class_}), event)
    await users_worker(users).take(records)

    assert await reserved(users, user_id) == {order_id: AMOUNT}


async def test_a_field_that_was_renamed_under_the_feet_of_users_svc_is_not_guessed(
    users: Users, orders: Orders
) -> None:
    """The negative control: the wrong way to rename stops the stream, instead of a guess."""
    user_id, order_id = await registered(users), new_id()
    event = PlacedRenamed(order_id=order_id, user_id=user_id, total=AMOUNT)
    codec: Codec[Any] = Codec({"order-placed": PlacedRenamed})
    worker = users_worker(users)

    await worker.take(await written(orders.pool, "orders.v1", codec, event))

    assert await reserved(users, user_id) == {}
    [reason] = await reasons(worker, users.pool)
    assert reason.startswith("ValidationError: ")


async def test_a_version_that_users_svc_does_not_know_waits_until_it_does(
    users: Users, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_id, order_id = await registered(users), new_id()
    event = PlacedInCurrency(order_id=order_id, user_id=user_id, amount=AMOUNT, currency="CNY")
    worker = users_worker(users)

    await worker.take(await written(orders.pool, "orders.v1", SECOND, event))

    assert await reserved(users, user_id) == {}
    assert await reasons(worker, users.pool) == ["UnknownSchemaVersion: version 2 of order-placed"]

    monkeypatch.setattr(order_messages, "PLACED", SECOND)
    await redrive(users_worker(users), users.pool, StreamKey("orders.v1", order_id), WARRANT)

    assert await reserved(users, user_id) == {order_id: AMOUNT}
    assert await reasons(worker, users.pool) == []


async def test_without_a_look_at_the_version_another_currency_is_taken_for_ours(
    users: Users, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: all the fields that are asked for are there."""

    def read(codec: Codec[Any], message: Message) -> Any:
        return codec.decode(message.type, message.data, codec.get_version(message.type))

    monkeypatch.setattr(Codec, "read", read)
    user_id, order_id = await registered(users), new_id()
    event = PlacedInCurrency(order_id=order_id, user_id=user_id, amount=AMOUNT, currency="JPY")

    await users_worker(users).take(await written(orders.pool, "orders.v1", SECOND, event))

    assert await reserved(users, user_id) == {order_id: AMOUNT}


@pytest.mark.parametrize(
    "newer",
    [Codec({"order-placed": PlacedWithChannel}), SECOND],
    ids=["a field with a default more", "the next version"],
)
async def test_the_next_users_svc_takes_orders_of_before(
    users: Users, orders: Orders, monkeypatch: pytest.MonkeyPatch, newer: Codec[Any]
) -> None:
    monkeypatch.setattr(order_messages, "PLACED", newer)
    user_id, order_id = await registered(users), new_id()
    event = Placed(order_id=order_id, user_id=user_id, amount=AMOUNT)

    await users_worker(users).take(await written(orders.pool, "orders.v1", FIRST, event))

    assert await reserved(users, user_id) == {order_id: AMOUNT}


# What other versions of users-svc say of credit, and other versions of orders-svc read.


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    user_id: UUID
    order_id: UUID
    amount: Decimal
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedWithMissing(Refused):
    """Grown by a field."""

    missing: Decimal = Decimal("0.00")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedWithCode(Refused):
    """`reason` is on its way to be called `code`."""

    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedForNow(Refused):
    """Version 2: it may be reconsidered, so a reader must not reject the order at once."""

    final: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWithMissing(user_messages.CreditRefused):
    """The view of the next orders-svc."""

    missing: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadForNow(user_messages.CreditRefused):
    """The view of the orders-svc after that."""

    final: bool


def finally_(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "final": True}


REFUSED: Codec[Any] = Codec({"credit-refused": Refused})
REFUSED_SECOND: Codec[Any] = Codec(
    {"credit-refused": RefusedForNow}, {"credit-refused": [finally_]}
)
READ_SECOND: Codec[Any] = Codec({"credit-refused": ReadForNow}, {"credit-refused": [finally_]})


async def placed(orders: Orders) -> UUID:
    order_id = new_id()
    line = OrderLine(item_id=new_id(), quantity=1, unit_price=AMOUNT)
    command = PlaceOrder(order_id=order_id, user_id=new_id(), lines=(line,), ordered_at=THEN)
    await handle(orders.orders, ORDER, order_id, command, metadata=some_cause())
    return order_id


async def status(orders: Orders, order_id: UUID) -> tuple[str, str | None]:
    order = require_placed((await load(orders.orders, ORDER, order_id)).state)
    return order.status, order.reason


def orders_worker(orders: Orders) -> Consumer:
    return orders_svc.worker.create_consumer(orders, ignore_letters)


def refused(class_: type[Any], order_id: UUID, **more: object) -> Any:
    return class_(user_id=new_id(), order_id=order_id, amount=AMOUNT, reason="poor", **more)


@pytest.mark.parametrize(
    ("class_", "more"),
    [
        (Refused, {}),
        (RefusedWithMissing, {}),
        (RefusedWithMissing, {"missing": Decimal("1.00")}),
        (RefusedWithCode, {"code": "poor"}),
    ],
    ids=["today's fields", "new field", "new field with a value", "renamed the right way"],
)
async def test_orders_svc_takes_answers_of_services_before_and_after_it(
    users: Users, orders: Orders, class_: type[Any], more: dict[str, Any]
) -> None:
    order_id = await placed(orders)
    event = refused(class_, order_id, **more)

    records = await written(users.pool, "users.v1", Codec({"credit-refused": class_}), event)
    await orders_worker(orders).take(records)

    assert await status(orders, order_id) == ("rejected", "poor")


async def test_a_version_that_orders_svc_does_not_know_waits_until_it_does(
    users: Users, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_id = await placed(orders)
    event = refused(RefusedForNow, order_id, final=False)
    worker = orders_worker(orders)

    await worker.take(await written(users.pool, "users.v1", REFUSED_SECOND, event))

    assert await status(orders, order_id) == ("pending", None)
    assert await reasons(worker, orders.pool) == [
        "UnknownSchemaVersion: version 2 of credit-refused"
    ]

    monkeypatch.setattr(user_messages, "CODEC", READ_SECOND)
    await redrive(orders_worker(orders), orders.pool, StreamKey("users.v1", event.user_id), WARRANT)

    assert await status(orders, order_id) == ("rejected", "poor")


@pytest.mark.parametrize(
    "newer",
    [Codec({"credit-refused": ReadWithMissing}), READ_SECOND],
    ids=["a field with a default more", "the next version"],
)
async def test_the_next_orders_svc_takes_answers_of_before(
    users: Users, orders: Orders, monkeypatch: pytest.MonkeyPatch, newer: Codec[Any]
) -> None:
    monkeypatch.setattr(user_messages, "CODEC", newer)
    order_id = await placed(orders)

    records = await written(users.pool, "users.v1", REFUSED, refused(Refused, order_id))
    await orders_worker(orders).take(records)

    assert await status(orders, order_id) == ("rejected", "poor")


@pytest.mark.parametrize("reader", ["users-worker", "orders-worker"])
async def test_no_reaction_guesses_at_a_version_that_it_does_not_know(
    users: Users, orders: Orders, reader: str
) -> None:
    """Of all that a worker cares about, for its domain and for its read models."""
    worker, pool = (
        (users_worker(users), users.pool)
        if reader == "users-worker"
        else (orders_worker(orders), orders.pool)
    )
    wanted = [(topic, name) for topic, names in worker.handled_types.items() for name in names]

    await worker.take([of_a_later_version(topic, name) for topic, name in wanted])

    assert sorted(await reasons(worker, pool)) == sorted(
        f"UnknownSchemaVersion: version 9 of {name}" for _, name in wanted
    )


def of_a_later_version(topic: str, name: str) -> IncomingRecord:
    """The first sample of a type, said to be of version 9, on a stream of its own."""
    value = sample_path(ROOT, topic, name, FIRST_VERSION).read_bytes()
    good = record(new_id(), 1, type_=name, schema_version=9, value=value)
    return replace(good, topic=topic)
