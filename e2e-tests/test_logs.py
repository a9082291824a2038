"""The logs of a running stack: one order can be followed, and nothing in them is personal."""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest

from shared.runtime import log_lines, logs
from test_support.raw_records import encode, event_headers, raw, write_each
from test_support.system.clients import Hometown, Json, rfc3339
from test_support.system.eventually import eventually
from test_support.system.stack import Stack

NAME, PLACE, GENDER = "Wolfeschlegelstein", "Plauen-Nord-77", "other-gender-77"
LONG_AGO = "2015-12-11T00:00:00Z"
SILENT_SECONDS = 15
"""How long a server is stopped."""

Lines = list[tuple[str, Mapping[str, Any]]]
"""The processes that wrote them, and their fields."""


def lines_about(stack: Stack, order_id: str) -> Lines:
    found = []
    for line in stack.make_output("logs", f"order={order_id}").splitlines():
        process, _, text = line.partition("{")
        found.append((process.strip().rstrip("-0123456789"), json.loads(f"{{{text}")))
    return found


@pytest.fixture
def order_id(hometown: Hometown, hour: datetime) -> str:
    """An order of an extraordinary person that was confirmed."""
    person = {"name": NAME, "gender": "other", "credit_limit": "100.00", "effective_at": LONG_AGO}
    user_id = hometown.register_user(**person, address=PLACE)["user_id"]
    hometown.move_user(user_id, address=f"{PLACE}-II")
    item = {"name": "thing", "type": "phone", "price": "10.00", "effective_at": LONG_AGO}
    item_id = hometown.list_item(**item, origin=PLACE)["item_id"]
    order: str = hometown.place_order(user_id, [(item_id, 1)], hour)["order_id"]
    assert hometown.wait_for_decision(order)["status"] == "confirmed"
    return order


def test_an_order_is_followed_through_all_processes(stack: Stack, order_id: str) -> None:
    lines = eventually(
        lambda: lines_about(stack, order_id),
        lambda lines: any(process == "analytics-job" for process, _ in lines),
        what="the batch of the job that counted the order",
    )

    times = [fields["time"] for _, fields in lines]
    assert times == sorted(times)
    of_order = [
        (process, fields["message"], fields["event_type"])
        for process, fields in lines
        if fields.get("stream_id") == order_id
    ]
    assert of_order[0] == ("orders-api", "recorded", "order-placed")
    assert ("users-worker", "consumed", "order-placed") in of_order
    assert ("orders-worker", "recorded", "order-confirmed") in of_order
    others = {(process, fields["message"], fields.get("event_type")) for process, fields in lines}
    assert others > {
        ("orders-relay", "published", None),
        ("users-worker", "recorded", "credit-reserved"),
        ("users-relay", "published", None),
        ("orders-worker", "consumed", "credit-reserved"),
        ("analytics-job", "counted", None),
    }
    outcomes = [fields for _, fields in lines if fields["message"] != "published"]
    assert all(fields["seconds"] > 0 for fields in outcomes)
    assert all({"trace_id", "span_id"} <= fields.keys() for fields in outcomes)


def test_the_trace_of_a_line_is_that_of_its_order(
    stack: Stack, hometown: Hometown, order_id: str
) -> None:
    if not hometown.jaeger_answers():
        pytest.skip("no Jaeger")
    [line] = [
        fields
        for _, fields in lines_about(stack, order_id)
        if (fields["message"], fields.get("event_type")) == ("recorded", "order-placed")
    ]

    trace = eventually(
        lambda: hometown.trace(line["trace_id"]), bool, what="the trace that a line names"
    )

    assert line["span_id"] in json.dumps(trace)


@pytest.mark.parametrize("name", ["seven", "se'ven; echo", "$HOME"])
def test_an_id_of_no_order_is_one_line(stack: Stack, name: str) -> None:
    ended = stack.make("logs", f"order={name.replace('$', '$$')}")

    assert f"hometown: order={name} is no id of an order" in ended.stderr
    assert ended.returncode != 0


def test_no_line_has_personal_data(stack: Stack, hometown: Hometown, order_id: str) -> None:
    """Not even about requests that are refused, and records that no reader can take."""
    poison = {"user_id": 7, "name": NAME, "address": PLACE, "gender": GENDER}
    for wrong in ({"credit_limit": PLACE}, {"gender": GENDER}, {"effective_at": PLACE}):
        good: Json = {"name": NAME, "address": PLACE, "gender": "other", "credit_limit": "1.00"}
        with pytest.raises(httpx.HTTPStatusError):
            hometown.register_user(**good | wrong)
    stream_id = str(uuid4())
    headers = encode(event_headers("user-registered", stream_id))
    record = raw("users.v1", 0, *headers, value=json.dumps(poison).encode())
    asyncio.run(write_each(hometown.addresses["kafka"], [record]))

    with pytest.raises(asyncpg.NotNullViolationError):
        stack.fetch("users", "INSERT INTO streams (category) VALUES ($1)", PLACE)

    eventually(
        lambda: stack.logs()["users-worker"],
        lambda log: f'"stream_id":"{stream_id}"' in log and "the stream is parked" in log,
        what="the line about a record that cannot be taken",
    )
    assert lines_about(stack, order_id), "the scan sees the lines of this order"
    assert "violates not-null constraint" in stack.logs()["postgres"]

    for process, log in stack.logs().items():
        for word in (NAME, PLACE, GENDER):
            assert word not in log, f"{word} in the log of {process}"


def again(order: Json) -> dict[str, Any]:
    """The same order as another one."""
    lines = [(line["item_id"], line["quantity"]) for line in order["lines"]]
    ordered_at = datetime.fromisoformat(order["ordered_at"])
    return {"user_id": order["user_id"], "lines": lines, "ordered_at": ordered_at}


@pytest.mark.parametrize(
    ("server", "processes"),
    [
        ("kafka", {"orders-relay", "orders-worker", "users-worker"}),
        ("postgres", {"orders-api", "orders-relay", "orders-worker"}),
    ],
)
def test_what_is_unavailable_is_one_line_a_minute_for_each_cause(
    stack: Stack, hometown: Hometown, order_id: str, server: str, processes: set[str]
) -> None:
    order = hometown.get_order(order_id)
    begin = rfc3339(datetime.now().astimezone())
    before = stack.lives()
    with stack.stopped(server):
        for _ in range(5):
            with suppress(httpx.HTTPError):
                hometown.cancel_order(hometown.place_order(**again(order))["order_id"])
        eventually(
            lambda: {process for process, fields in lines_since(stack, begin) if is_bad(fields)},
            lambda found: found >= processes,
            what=f"lines about {server}, which is gone",
        )
        time.sleep(SILENT_SECONDS)
        same = {name for name, life in before.items() if stack.lives().get(name) == life}
        written = [each for each in lines_since(stack, begin) if each[0] in same]

    times: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for process, fields in written:
        if is_bad(fields):
            # Messages of libraries differ in ports and numbers of nodes.
            what = "".join(each for each in fields["message"] if not each.isdigit())
            instant = datetime.fromisoformat(fields["time"])
            cause = (process, str(fields["logger"]), what, str(fields.get("cause")))
            times[cause].append(instant.timestamp())
    assert times
    for cause, instants in times.items():
        pauses = [later - sooner for sooner, later in pairwise(instants)]
        assert all(pause >= logs.REPEAT_SECONDS_MIN - 1 for pause in pauses), cause


def is_bad(fields: Mapping[str, Any]) -> bool:
    return fields["level"] in ("warning", "error", "critical")


def lines_since(stack: Stack, begin: str) -> Lines:
    return list(iterate_since(stack, begin))


def iterate_since(stack: Stack, begin: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for process, log in stack.logs().items():
        for text in log.splitlines():
            fields = log_lines.parse(text)
            if fields is not None and str(fields[log_lines.TIME]) > begin:
                yield process, fields
