"""What an API accepts, no later reader refuses, with values at and around each bound.

The readers are the contract's schema, the codec of the workers, the job, and definition.sql.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import jsonschema_rs
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

import orders_svc.item.contract
import orders_svc.order.contract
import users_svc.contract
from analytics_spark.job import records
from contracts.event_schemas import schema_of
from orders_svc.item.schemas import (
    CorrectItemOriginRequest,
    ListItemRequest,
    RepriceItemRequest,
)
from orders_svc.order.schemas import CancelOrderRequest, OrderLineRequest, PlaceOrderRequest
from shared.eventsourcing.codec import FIRST_VERSION, Codec
from shared.messaging.bounds import (
    INSTANT_MAX,
    INSTANT_MIN,
    MONEY_MAX,
    QUANTITY_MAX,
    VERSION_MAX,
)
from shared.messaging.records import IncomingRecord, Malformed, parse_message
from shared.web.field_types import Instant, Money
from test_support.analytics.histories import (
    Event,
    at,
    cancelled,
    confirmed,
    id_of,
    listed,
    moved,
    registered,
)
from test_support.analytics.small_job import RECORDED_AT, TOPICS, to_record_batch
from users_svc.schemas import MoveUserRequest, RegisterUserRequest
from verification.differential import oracle
from verification.differential.history_trial import table
from verification.differential.oracle import BATCHES, NEVER_MILLISECONDS, RECORDS

CODECS: Mapping[str, Codec[Any]] = {
    "users.v1": users_svc.contract.CODEC,
    "items.v1": orders_svc.item.contract.CODEC,
    "orders.v1": orders_svc.order.contract.CODEC,
}

USER = registered("Jack", "BJ", since=INSTANT_MIN)
ITEM = listed("iphone", since=INSTANT_MIN)
ORDER = confirmed("order", "Jack", ("iphone", 1), ordered_at=at())
LAST_ORDER = confirmed("order", "Jack", ("iphone", 1), ordered_at=datetime(2090, 1, 1, tzinfo=UTC))
CANCELLATION = cancelled("order", "Jack", ("iphone", 1), ordered_at=at())


def accepts(form: Any, value: object) -> bool:
    try:
        TypeAdapter(form).validate_python(value)
    except ValidationError:
        return False
    return True


def with_fields(event: Event, **fields: object) -> Event:
    assert isinstance(event.data, dict)
    return replace(event, data=event.data | fields)


def with_line(event: Event, **fields: object) -> Event:
    assert isinstance(event.data, dict)
    [line] = event.data["lines"]
    return with_fields(event, lines=[line | fields])


def contract_accepts(event: Event) -> bool:
    """Whether it matches the published schema of its type."""
    codec = CODECS[event.topic]
    schema = schema_of(event.topic, codec, event.type)
    document = json.loads(event.value)
    optional = {"credit_limit", "amount", "price", "name"}  # of no interest to the job
    schema["required"] = [name for name in schema["required"] if name not in optional]
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True).is_valid(document)


def worker_accepts(event: Event) -> bool:
    """Whether a worker can decode it."""
    codec = CODECS[event.topic]
    complete = {"credit_limit": "1.00", "amount": "1.00", "price": "1.00"} | json.loads(event.value)
    try:
        codec.decode(event.type, json.dumps(complete), FIRST_VERSION)
    except ValidationError:
        return False
    return True


def job_accepts(event: Event) -> bool:
    """Whether the Spark job takes it, or writes it as a dead letter."""
    batch = pa.Table.from_batches([to_record_batch([event], buckets=4)])
    bad = records.check(TOPICS[event.topic], batch).bad
    return len(bad) == 0


def definition_accepts(*events: Event) -> bool:
    """Whether definition.sql counts a local purchase."""
    rows = [
        (each.topic, 0, offset, each.key.encode(), each.value, each.type, each.version, RECORDED_AT)
        for offset, each in enumerate(events)
    ]
    batches = [(topic, 0, 0, len(events), 0, NEVER_MILLISECONDS) for topic in TOPICS]
    cells = oracle.answer(table(rows, RECORDS), table(batches, BATCHES)).cells
    return [cell["user_id"] for cell in cells.to_pylist()] == [id_of("Jack")]


def text_of(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


@st.composite
def near_bounds(draw: st.DrawFn) -> str:
    """An instant near the first or the last one, as a client in any time zone writes it."""
    bound = draw(st.sampled_from([INSTANT_MIN, INSTANT_MAX]))
    distance = draw(
        st.sampled_from([-1, 0, 1, 999, 1000, 1001]).map(lambda each: timedelta(microseconds=each))
        | st.timedeltas(timedelta(days=-2), timedelta(days=2))
    )
    offset = timedelta(minutes=draw(st.integers(-1439, 1439)))
    return (bound + distance).astimezone(timezone(offset)).isoformat()


@settings(max_examples=40)
@given(near_bounds())
def test_an_instant_is_in_bounds_for_all_or_for_none(written: str) -> None:
    """In UTC, where the year can be another one than the client has written; an API requires it of
    both."""
    instant = datetime.fromisoformat(written)
    in_utc = text_of(instant)
    user, item = (with_fields(each, effective_at=in_utc) for each in (USER, ITEM))
    order = with_fields(ORDER, ordered_at=in_utc)

    is_accepted = INSTANT_MIN <= instant <= INSTANT_MAX

    has_a_year = INSTANT_MIN.year <= instant.year <= INSTANT_MAX.year
    assert accepts(Instant, written) == (is_accepted and has_a_year)
    for event in (user, item, order):
        assert contract_accepts(event) == is_accepted
        assert worker_accepts(event), "a worker folds what was accepted once"
    for event in (user, item):
        assert job_accepts(event) == is_accepted
    later = is_accepted and in_utc > "2090"
    assert definition_accepts(user, ITEM, LAST_ORDER) == (is_accepted and not later)
    assert definition_accepts(USER, item, LAST_ORDER) == (is_accepted and not later)


@settings(max_examples=40)
@given(near_bounds())
def test_the_time_of_an_order_is_in_bounds_for_all_or_for_none(written: str) -> None:
    """The last years are from the future of the record, so only the first bound is one here."""
    instant = datetime.fromisoformat(written)
    order = with_fields(ORDER, ordered_at=text_of(instant))
    is_counted = instant >= INSTANT_MIN and instant.timestamp() * 1000 <= RECORDED_AT

    assert job_accepts(order) == is_counted
    assert definition_accepts(USER, ITEM, order) == is_counted


FIELDS_OF_EVENTS = [
    *((USER, name) for name in ("user_id", "effective_at", "address", "gender")),
    *((ITEM, name) for name in ("item_id", "effective_at", "origin", "type")),
    *((ORDER, name) for name in ("order_id", "user_id", "ordered_at", "lines")),
    *((ORDER, name) for name in ("item_id", "quantity", "unit_price")),
    (CANCELLATION, "was_confirmed"),
]
"""All that the job reads."""

NO_TEXTS: Sequence[object] = (
    None,
    True,
    1,
    -1,
    1.5,
    10**30,
    1_767_225_600,
    [],
    [1],
    [[]],
    {},
    {"a": 1},
)
TEXTS_IN_PLACE = ("", "x", "1", "true", "[]")
NO_TEXT_FIELDS = ("lines", "quantity", "was_confirmed")


def with_value(event: Event, name: str, value: object) -> Event:
    assert isinstance(event.data, dict)
    is_of_line = name not in event.data
    return with_line(event, **{name: value}) if is_of_line else with_fields(event, **{name: value})


def definition_takes(event: Event) -> bool:
    """Whether it matters to definition.sql, with what is right around it."""
    match event.topic:
        case "users.v1":
            return definition_accepts(event, ITEM, LAST_ORDER)
        case "items.v1":
            return definition_accepts(USER, event, LAST_ORDER)
    if event.type == CANCELLATION.type:
        return not definition_accepts(USER, ITEM, ORDER, event)
    return definition_accepts(USER, ITEM, event)


@pytest.mark.parametrize(
    ("event", "name"),
    FIELDS_OF_EVENTS,
    ids=[f"{each.type}-{name}" for each, name in FIELDS_OF_EVENTS],
)
def test_a_value_of_another_type_is_refused_by_all(event: Event, name: str) -> None:
    texts = TEXTS_IN_PLACE if name in NO_TEXT_FIELDS else ()
    for value in (*NO_TEXTS, *texts):
        written = with_value(event, name, value)
        if not contract_accepts(written) or value == []:  # an order without lines
            assert not job_accepts(written), value
            assert not definition_takes(written), value
            assert not worker_accepts(written) or name in ("lines", "unit_price"), value


LEAP_SECOND = "2016-12-31T23:59:60Z"
"""JSON Schema takes it as a date-time; pydantic, which writes all times, cannot."""

TIMES = (
    "2026-01-01",
    "2026-01-01T00Z",
    "2026-01-01T00:00Z",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.1Z",
    "2026-01-01T00:00:00.123456Z",
    "2026-01-01T00:00:00.1234567Z",
    "2026-01-01T00:00:00.Z",
    "2026-01-01T00:00:00,5Z",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00z",
    "2026-01-01t00:00:00Z",
    "2026-01-01 00:00:00Z",
    "2026-01-01T00:00:00+00:00",
    "2026-01-01T00:00:00+01:00",
    "2026-01-01T00:00:00 UTC",
    "2026-01-01T00:00:00 Europe/Berlin",
    LEAP_SECOND,
    "2026-01-01T24:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-00T00:00:00Z",
    "2028-02-29T00:00:00Z",
    "2026-1-1T0:0:0Z",
    "2026-W01-1T00:00:00Z",
    "20260101T000000Z",
    "2026/01/01",
    " 2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z\n",
    "02026-01-01T00:00:00Z",
    "٢٠٢٦-01-01T00:00:00Z",
    "1767225600",
    "epoch",
    "now",
    "infinity",
)


@pytest.mark.parametrize("time", TIMES, ids=ascii)
def test_a_time_is_of_one_form_for_all(time: str) -> None:
    for event, name in ((USER, "effective_at"), (ITEM, "effective_at"), (ORDER, "ordered_at")):
        written = with_fields(event, **{name: time})
        is_accepted = contract_accepts(written) and time != LEAP_SECOND
        assert job_accepts(written) == is_accepted
        assert definition_takes(written) == is_accepted


AMOUNTS = (
    *("0", "00", "1", "1.2", "1.25", "1.250", "01", "0000000001", "00000000001", "12345678901"),
    *("+1", "-1", "-0", "-0.00", ".5", "1.", "1,5", "1e0", "1E0", "1e-2", "125e-2", " 1 ", "1\n"),
    *("1_0", "0x1", "NaN", "Infinity", "١", "$1", "1.2.3", "", "null"),
)


@pytest.mark.parametrize("amount", AMOUNTS, ids=ascii)
def test_an_amount_is_of_one_form_for_all(amount: str) -> None:
    written = with_line(ORDER, unit_price=amount)

    is_accepted = contract_accepts(written)

    assert job_accepts(written) == is_accepted
    assert definition_takes(written) == is_accepted


AT_NOON = b"2026-01-01T12:00:00Z"


@pytest.mark.parametrize("version", [0, 1, VERSION_MAX, VERSION_MAX + 1])
def test_a_version_is_in_bounds_for_all_or_for_none(version: int) -> None:
    for event in (USER, ITEM):
        written = replace(event, version=version)
        is_accepted = 1 <= version <= VERSION_MAX
        assert has_message(written) == is_accepted
        assert job_accepts(written) == is_accepted
        assert definition_takes(written) == is_accepted


def has_message(event: Event) -> bool:
    """Whether a worker can read its headers, with those that only workers need."""
    some_id = id_of("anything").encode()
    more = [("ce_streamid", some_id), ("ce_correlationid", some_id), ("ce_time", AT_NOON)]
    record = IncomingRecord(
        topic=event.topic,
        partition=0,
        offset=0,
        key=event.key.encode(),
        value=event.value,
        headers=[*event.headers, *more],
    )
    try:
        parse_message(record)
    except Malformed:
        return False
    return True


FIELDS = [
    (RegisterUserRequest, "effective_at"),
    (MoveUserRequest, "effective_at"),
    (ListItemRequest, "effective_at"),
    (RepriceItemRequest, "effective_at"),
    (CorrectItemOriginRequest, "effective_at"),
    (PlaceOrderRequest, "ordered_at"),
]


@pytest.mark.parametrize(("request_type", "name"), FIELDS)
@pytest.mark.parametrize(
    ("written", "is_accepted"),
    [
        ("1970-01-01T00:00:00Z", True),
        ("1970-01-01T00:00:00+01:00", False),
        ("1970-01-01T23:58:59+23:59", False),
        ("1970-01-01T23:59:00+23:59", True),
        ("1969-12-31T23:00:00-01:00", False),  # its year is not one of the form
    ],
)
def test_every_request_has_the_bound(
    request_type: type[BaseModel], name: str, written: str, is_accepted: bool
) -> None:
    field = request_type.model_fields[name]

    assert accepts(field.rebuild_annotation(), written) == is_accepted


@settings(max_examples=40)
@given(st.integers(-2, 3) | st.integers(QUANTITY_MAX - 2, QUANTITY_MAX + 2))
def test_a_quantity_is_in_bounds_for_all_or_for_none(quantity: int) -> None:
    order = with_line(ORDER, quantity=quantity)

    is_accepted = accepts(OrderLineRequest, {"item_id": id_of("iphone"), "quantity": quantity})

    assert contract_accepts(order) == is_accepted
    assert worker_accepts(order) == is_accepted
    assert job_accepts(order) == is_accepted
    assert definition_accepts(USER, ITEM, order) == is_accepted


@settings(max_examples=40)
@given(
    st.decimals(-1, 1, places=2) | st.decimals(MONEY_MAX - 1, MONEY_MAX + 1, places=2),
    st.sampled_from(["", "0", "00", "9"]),
)
def test_a_price_is_in_bounds_for_all_or_for_none(price: Decimal, more: str) -> None:
    order = with_line(ORDER, unit_price=f"{price}{more}")

    is_accepted = accepts(Money, f"{price}{more}")

    assert is_accepted == (0 <= price <= MONEY_MAX and not more and not price.is_signed())
    assert contract_accepts(order) == is_accepted
    assert definition_accepts(USER, ITEM, order) == is_accepted
    if is_accepted:
        assert job_accepts(order)
        assert worker_accepts(order)


ESCAPES = ["\\u0000", "\\", "\\\\u0000", "u0000", "\\n", '"', "\\ud800", "\u2028", "\ufffe", "{}"]
"""Characters that look like escapes of JSON once they are written in it, and other traps."""

TEXTS = st.lists(st.sampled_from(ESCAPES) | st.text(max_size=3), max_size=4).map("".join)


@given(TEXTS)
def test_a_text_that_an_api_accepts_is_read_by_all(text: str) -> None:
    """Also a text that merely contains what would be an escape."""
    if not accepts(CancelOrderRequest, {"reason": text}):
        return
    order = cancelled("order", "Jack", ("iphone", 1), ordered_at=at())
    explained = with_fields(order, reason=text).data
    for is_escaped in (True, False):
        event = replace(order, data=json.dumps(explained, ensure_ascii=is_escaped).encode())
        assert contract_accepts(event)
        assert worker_accepts(event)
        assert job_accepts(event)


@settings(max_examples=40)
@given(TEXTS)
def test_a_place_or_a_type_that_an_api_accepts_is_read_by_all(text: str) -> None:
    request = {"name": "x", "type": text, "origin": text, "price": "1.00"}
    if not accepts(ListItemRequest, request):
        return
    stored = ListItemRequest.model_validate(request)
    item = with_fields(ITEM, type=stored.type, origin=stored.origin)
    user = with_fields(USER, address=stored.origin)
    move = moved("Jack", stored.origin, since=at())

    for event in (item, user, move):
        assert contract_accepts(event)
        assert worker_accepts(event)
        assert job_accepts(event)
    assert definition_accepts(user, item, ORDER)
