"""A record that breaks its contract is separated; the records around it are read."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from analytics_spark.job.records import FUTURE_MAX_MILLISECONDS, Checked, check
from analytics_spark.job.topics import ORDERS, USERS
from test_support.analytics.histories import (
    Event,
    at,
    cancelled,
    confirmed,
    deleted,
    id_of,
    registered,
)
from test_support.analytics.small_job import RECORDED_AT, milliseconds, to_record_batch

GOOD = confirmed("good", "Jack", ("iphone", 1), ordered_at=at())
DATA = json.loads(GOOD.value)
LINE = DATA["lines"][0]


def checked(*events: Event) -> Checked:
    topic = USERS if events[0].topic == USERS.name else ORDERS
    return check(topic, pa.Table.from_batches([to_record_batch(events, buckets=4)]))


def changed(**fields: object) -> bytes:
    return json.dumps(DATA | fields).encode()


def with_line(**fields: object) -> bytes:
    return changed(lines=[LINE | fields])


DOCUMENT = "the value does not match the schema"
KEY = "the key is not the user_id"
NUL = "a text holds U+0000, which PostgreSQL cannot store"
A_LINE = "a line is incomplete, or its numbers are out of range"

BROKEN = {
    "nothing": (b"", DOCUMENT),
    "null": (b"null", DOCUMENT),
    "garbage": (b"\xff\xfe\x00garbage", DOCUMENT),
    "cut off": (GOOD.value[:-1], DOCUMENT),
    "two documents": (GOOD.value + GOOD.value, DOCUMENT),
    "two documents on two lines": (GOOD.value + b"\n" + GOOD.value, DOCUMENT),
    "the end of another document": (b"}" + GOOD.value, DOCUMENT),
    "a document in disguise": (b'{}}\n{"document":' + GOOD.value, DOCUMENT),
    "a list": (b"[" + GOOD.value + b"]", DOCUMENT),
    "a deep nest": (b"[" * 100_000, DOCUMENT),
    "a number for an id": (changed(order_id=7), DOCUMENT),
    "U+0000 in an id": (changed(order_id="a\0b"), NUL),
    "U+0000 in a line": (with_line(item_id="\0"), NUL),
    "broken UTF-8": (GOOD.value.replace(id_of("good").encode(), b"\xff\xfe"), DOCUMENT),
    "half a surrogate": (GOOD.value.replace(b'"amount": "0.00"', b'"amount": "\\ud800"'), DOCUMENT),
    "a fraction": (with_line(quantity=1.5), DOCUMENT),
    "a quantity beyond all bounds": (with_line(quantity=10**30), DOCUMENT),
    "a quantity as text": (with_line(quantity="1"), DOCUMENT),
    "a third of a cent": (with_line(unit_price="0.333"), DOCUMENT),
    "a time that is none": (changed(ordered_at="yesterday"), DOCUMENT),
    "no order id": (changed(order_id=None), "order_id is missing"),
    "another user than its key": (changed(user_id=id_of("Lily")), KEY),
    "no lines": (changed(lines=None), "the order has no lines"),
    "an empty list of lines": (changed(lines=[]), "the order has no lines"),
    "an absent line": (changed(lines=[None]), A_LINE),
    "no item": (with_line(item_id=None), A_LINE),
    "no quantity": (with_line(quantity=None), A_LINE),
    "a quantity of zero": (with_line(quantity=0), A_LINE),
    "no price": (with_line(unit_price=None), A_LINE),
    "a negative price": (with_line(unit_price="-1.00"), DOCUMENT),
    "no time": (changed(ordered_at=None), "ordered_at is missing"),
    "a time before 1970": (changed(ordered_at="1969-12-31T23:59:59Z"), DOCUMENT),
    "a time after 2099": (changed(ordered_at="2100-01-01T00:00:00Z"), DOCUMENT),
}


@pytest.mark.parametrize(("value", "reason"), BROKEN.values(), ids=BROKEN.keys())
def test_a_bad_record_is_separated_and_its_neighbours_are_read(value: bytes, reason: str) -> None:
    before = confirmed("before", "Jack", ("iphone", 1), ordered_at=at())
    after = confirmed("after", "Jack", ("ipad", 2), ordered_at=at(1))
    broken = replace(GOOD, data=value)

    result = checked(before, broken, after)

    assert result.bad.to_pylist() == [
        {"topic": "orders.v1", "partition": 0, "offset": broken.number, "reason": reason}
    ]
    assert result.rows["order_id"].to_pylist() == [id_of("before"), id_of("after")]
    assert result.rows["offset"].to_pylist() == [before.number, after.number]


def test_many_broken_records_among_many_good_ones_are_all_found() -> None:
    events = [replace(GOOD, number=number) for number in range(1, 501)]
    for index in range(0, 500, 7):
        events[index] = replace(events[index], data=b"{")

    result = checked(*events)

    assert result.bad.num_rows == len(range(0, 500, 7))
    assert result.rows["offset"].to_pylist() == [
        event.number for event in events if event.data != b"{"
    ]


def test_money_is_read_to_the_cent() -> None:
    lines = [LINE | {"unit_price": price} for price in ("0.1", "0.29", "9999999999.99", "5")]

    result = checked(replace(GOOD, data=changed(lines=lines)))

    assert result.rows["unit_cents"].to_pylist() == [10, 29, 999_999_999_999, 500]


def test_lines_of_an_order_are_numbered() -> None:
    result = checked(
        confirmed("a", "Jack", ("iphone", 1), ("ipad", 2), ordered_at=at()),
        confirmed("b", "Jack", ("ipod", 3), ordered_at=at()),
    )

    assert result.rows["line"].to_pylist() == [0, 1, 0]
    assert result.rows["quantity"].to_pylist() == [1, 2, 3]


def test_times_are_cut_to_the_millisecond() -> None:
    result = checked(replace(GOOD, data=changed(ordered_at="2016-11-11T00:59:59.999999Z")))

    expected = milliseconds(datetime(2016, 11, 11, 0, 59, 59, 999_000, tzinfo=UTC))
    assert result.rows["ordered_at"].to_pylist() == [expected]


def test_an_order_from_the_future_would_move_the_watermark_and_is_bad() -> None:
    limit = RECORDED_AT + FUTURE_MAX_MILLISECONDS
    just, beyond = (
        confirmed("order", "Jack", ("iphone", 1), ordered_at=datetime.fromtimestamp(time, UTC))
        for time in (limit / 1000, (limit + 1) / 1000)
    )

    assert checked(just).bad.num_rows == 0
    assert checked(beyond).bad.num_rows == 1


def test_a_cancellation_says_whether_the_order_was_confirmed() -> None:
    event = cancelled("order", "Jack", ("iphone", 1), ordered_at=at())
    pending = cancelled("order", "Jack", ("iphone", 1), ordered_at=at(), was_confirmed=False)
    silent = replace(event, data=GOOD.data)

    assert checked(event).rows["cancelled"].to_pylist() == [True]
    assert (checked(pending).rows.num_rows, checked(pending).bad.num_rows) == (0, 0)
    assert checked(silent).bad.num_rows == 1


def test_white_space_and_unknown_fields_are_accepted() -> None:
    pretty = json.dumps(DATA | {"new": {"deep": [1]}}, indent=2).encode()

    result = checked(replace(GOOD, data=pretty))

    assert (result.rows.num_rows, result.bad.num_rows) == (1, 0)


@pytest.mark.parametrize("escape", ["\\u0000", "\\\\u0000", "u0000", "\\", "\\n"])
def test_a_text_that_only_looks_like_an_escape_is_data(escape: str) -> None:
    """In JSON `see \\u0000 there` is written with two backslashes."""
    reason = f"see {escape} there"
    order = cancelled("order", "Jack", ("iphone", 1), ordered_at=at())
    user = registered("Jack", reason, reason)
    assert isinstance(order.data, dict)
    explained = replace(order, data=order.data | {"reason": reason})

    assert checked(explained).rows["cancelled"].to_pylist() == [True]
    assert checked(user).rows["address"].to_pylist() == [reason]


def test_a_text_that_is_not_read_can_hold_any_character() -> None:
    assert checked(replace(GOOD, data=changed(reason="a\0b"))).bad.num_rows == 0


def test_a_deleted_user_has_a_version_without_attributes() -> None:
    result = checked(registered("Jack", "BJ"), deleted("Jack", since=at()))

    assert result.rows["address"].to_pylist() == ["BJ", None]
    assert result.rows["gender"].to_pylist() == ["male", None]
    assert result.bad.num_rows == 0


def test_a_user_without_an_address_is_bad_unless_deleted() -> None:
    event = registered("Jack", "BJ")
    assert isinstance(event.data, dict)

    assert checked(replace(event, data=event.data | {"address": None})).bad.num_rows == 1


def test_a_version_without_a_number_is_bad() -> None:
    assert checked(replace(registered("Jack", "BJ"), version=0)).bad.num_rows == 1
