"""What leaves the services is what the AsyncAPI document says, each header and each field."""

import json
from collections.abc import Sequence
from typing import Any

import asyncpg
import httpx
import pytest
from jsonschema import Draft202012Validator, FormatChecker, ValidationError

import orders_svc.worker
import users_svc.worker
from contracts.contract_files import ROOT, released
from contracts.promises import CONTRACT_ON, types_read
from orders_svc.bootstrap import Resources as Orders
from shared.inbox.consumer import Consumer
from shared.messaging.records import IncomingRecord
from shared.messaging.wire import OutgoingRecord
from shared.outbox.outbox import OutboxRow
from test_support.counter.counted_records import as_read
from test_support.first_services import is_added
from users_svc.bootstrap import Resources as Users

DOCUMENT: dict[str, Any] = json.loads((ROOT / "asyncapi.json").read_text())

SENT = """
    SELECT position, topic, partition, key, value, headers, traceparent
    FROM outbox
    ORDER BY position
"""

JACK = {"name": "Jack", "address": "BJ", "gender": "male", "credit_limit": "100.00"}
IPHONE = {"name": "iphone", "type": "phone", "origin": "BJ", "price": "60.00"}


async def write_dead_letters(letters: Sequence[OutgoingRecord]) -> None:
    raise AssertionError(letters)


async def sent(pool: asyncpg.Pool) -> list[IncomingRecord]:
    async with pool.acquire() as connection:
        return [as_read(row) for row in await connection.fetch(SENT, record_class=OutboxRow)]


async def some_trade(
    users: Users, orders: Orders, at_users: httpx.AsyncClient, at_orders: httpx.AsyncClient
) -> list[IncomingRecord]:
    """An order that is confirmed and cancelled, one that is rejected, and all other changes; every
    record of it."""
    jack = (await at_users.post("/v1/users", json=JACK)).headers["Location"]
    iphone = (await at_orders.post("/v1/items", json=IPHONE)).headers["Location"]
    lines = [{"item_id": iphone.rpartition("/")[2], "quantity": 1}]
    order = {"user_id": jack.rpartition("/")[2], "lines": lines}
    first = (await at_orders.post("/v1/orders", json=order)).headers["Location"]
    await at_orders.post("/v1/orders", json=order)
    await exchange(users, orders)
    await at_orders.post(f"{first}/cancel", json={"reason": "changed-my-mind"})
    await exchange(users, orders)
    await at_orders.post(f"{iphone}/price-changes", json={"price": "1.00"})
    await at_orders.post(f"{iphone}/origin-corrections", json={"origin": "SH"})
    await at_orders.delete(iphone)
    await at_users.post(f"{jack}/moves", json={"address": "SH"})
    await at_users.put(f"{jack}/credit-limit", json={"credit_limit": "1.00"})
    await at_users.delete(jack)
    return [*await sent(users.pool), *await sent(orders.pool)]


@pytest.fixture
async def records(
    users: Users, orders: Orders, at_users: httpx.AsyncClient, at_orders: httpx.AsyncClient
) -> list[IncomingRecord]:
    return await some_trade(users, orders, at_users, at_orders)


async def exchange(users: Users, orders: Orders) -> None:
    """Each worker takes all that the other service sent; what it took before has no effect."""
    await users_worker(users).take(of_topic("orders.v1", await sent(orders.pool)))
    await orders_worker(orders).take(of_topic("users.v1", await sent(users.pool)))


def of_topic(topic: str, records: Sequence[IncomingRecord]) -> list[IncomingRecord]:
    return [record for record in records if record.topic == topic]


def users_worker(users: Users) -> Consumer:
    return users_svc.worker.create_consumer(users, write_dead_letters)


def orders_worker(orders: Orders) -> Consumer:
    return orders_svc.worker.create_consumer(orders, write_dead_letters)


def validate(part: dict[str, Any], value: object) -> None:
    schema = {**part, "components": DOCUMENT["components"]}
    Draft202012Validator(schema, format_checker=FormatChecker()).validate(value)


def text_of(value: bytes | None) -> str:
    assert value is not None
    return value.decode()


async def test_every_record_is_as_documented(records: list[IncomingRecord]) -> None:
    for record in records:
        headers = {name: text_of(value) for name, value in record.headers}
        name = f"{headers['ce_type']}.v{headers['ce_schemaversion']}"
        assert name in DOCUMENT["channels"][record.topic]["messages"]
        told = DOCUMENT["components"]["messages"][name]
        assert record.value is not None
        assert record.key is not None
        validate(told["headers"], headers)
        validate(told["payload"], json.loads(record.value))
        assert headers.keys() <= DOCUMENT["components"]["schemas"]["headers"]["properties"].keys()
        assert json.loads(record.value).keys() == told["payload"]["properties"].keys()
        assert record.key.decode() == json.loads(record.value)[CONTRACT_ON[record.topic].key]
    types = {text_of(dict(record.headers)["ce_type"]) for record in records}
    promised = [each["types"] for topic, each in released().items() if not is_added(topic)]
    assert promised
    assert types >= {name for names in promised for name in names}


WRONG_HEADERS = {"ce_schemaversion": "2", "ce_streamversion": "one", "content-type": "text/plain"}
WRONG_FIELDS = {"amount": 30.0, "ordered_at": "yesterday", "lines": None}


async def test_a_record_that_is_not_as_documented_is_found(records: list[IncomingRecord]) -> None:
    """The negative control."""
    [record] = [each for each in records if dict(each.headers)["ce_type"] == b"order-confirmed"]
    told = DOCUMENT["components"]["messages"]["order-confirmed.v1"]
    headers = {name: text_of(value) for name, value in record.headers}

    for name, wrong in WRONG_HEADERS.items():
        with pytest.raises(ValidationError):
            validate(told["headers"], headers | {name: wrong})
    for name, value in WRONG_FIELDS.items():
        with pytest.raises(ValidationError):
            validate(told["payload"], json.loads(record.value or b"") | {name: value})


async def test_the_views_are_all_that_the_workers_react_to(users: Users, orders: Orders) -> None:
    """So that no reader is left out of the checks and of the document."""
    read = types_read()

    for worker, name in (
        (users_worker(users), users_svc.worker.NAME),
        (orders_worker(orders), orders_svc.worker.NAME),
    ):
        assert worker.name == name
        assert {
            (name, topic): frozenset(types) for topic, types in worker.handled_types.items()
        } == {(reader, topic): types for (reader, topic), types in read.items() if reader == name}


@pytest.mark.parametrize("credit_limit", [100, 100.0, 0.1])
async def test_trap_t22_a_number_is_no_limit(
    at_users: httpx.AsyncClient, credit_limit: float
) -> None:
    answer = await at_users.post("/v1/users", json=JACK | {"credit_limit": credit_limit})

    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("price", [60, 60.0, 0.1])
async def test_trap_t22_a_number_is_no_price(at_orders: httpx.AsyncClient, price: float) -> None:
    answer = await at_orders.post("/v1/items", json=IPHONE | {"price": price})

    assert answer.status_code == 422


async def test_trap_t22_money_is_answered_as_text(at_users: httpx.AsyncClient) -> None:
    answer = await at_users.post("/v1/users", json=JACK)

    assert answer.status_code == 201
    assert (answer.json()["credit_limit"], answer.json()["available_credit"]) == ("100.00",) * 2
