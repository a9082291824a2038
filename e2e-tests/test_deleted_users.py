"""A deleted user's name is in no database file, Kafka log, log file or trace."""

import base64
import json
from datetime import datetime

import httpx
import pytest

from test_support.system.clients import Hometown, Json
from test_support.system.eventually import eventually
from test_support.system.stack import Stack

pytestmark = pytest.mark.verify(part="end-to-end")

NAME = "Wolfeschlegelsteinhausenbergerdorff"
BIRTH_YEAR = 1904
PLACE = "PLACE-IN-CLEAR"
"""Text that is stored in clear, to show that the scan finds something."""
LONG_AGO = "2015-12-11T00:00:00Z"
PERSON: Json = {
    "name": NAME,
    "birth_year": BIRTH_YEAR,
    "gender": "other",
    "credit_limit": "1000.00",
    "effective_at": LONG_AGO,
}
THING: Json = {
    "name": "thing",
    "type": "phone",
    "origin": PLACE,
    "price": "100.00",
    "effective_at": LONG_AGO,
}


def traces_of(ways: list[str]) -> list[bytes]:
    """The encodings in which a text could be stored."""
    forms = [text.encode(code) for text in ways for code in ("utf-8", "utf-16-le")]
    # In base64, the letters depend on where in a group of three the text begins.
    in_base64 = [
        base64.b64encode(b"\0" * shift + text.encode())[4:-4] for text in ways for shift in range(3)
    ]
    in_hexadecimal = [text.encode().hex().encode() for text in ways]
    return [*forms, *in_base64, *in_hexadecimal]


PERSONAL = traces_of([NAME, NAME.upper(), NAME.lower()]) + [
    f'"birth_year"{separator}{BIRTH_YEAR}'.encode() for separator in (":", ": ", "=")
]


@pytest.fixture
def story(hometown: Hometown, hour: datetime) -> Json:
    """A user with every kind of request, also invalid ones, who was then deleted."""
    key = f"plant-{hour:%H}"
    user = hometown.register_user(**PERSON, address=PLACE, key=key)
    hometown.register_user(**PERSON, address=PLACE, key=key)
    user_id = user["user_id"]
    assert hometown.get_user(user_id)["name"] == NAME
    for wrong in ({"credit_limit": 5}, {"address": ""}, {"surprise": NAME}):
        with pytest.raises(httpx.HTTPStatusError):
            hometown.register_user(key=None, **PERSON | {"address": PLACE} | wrong)
    item = hometown.list_item(**THING)["item_id"]
    order = hometown.place_order(user_id, [(item, 1)], hour)["order_id"]
    assert hometown.wait_for_decision(order)["status"] == "confirmed"
    with pytest.raises(httpx.HTTPStatusError):
        hometown.cancel_order(order, reason=f"{NAME} has moved")
    hometown.move_user(user_id, address="SH", key=key)
    # Until users-svc has consumed the confirmation, the order is pending there.
    eventually(lambda: hometown.delete_user(user_id), bool, what="the user is deleted")
    return user


def test_nothing_holds_the_name_of_a_deleted_user(
    hometown: Hometown, stack: Stack, story: Json
) -> None:
    with pytest.raises(httpx.HTTPStatusError, match="user-deleted"):
        hometown.get_user(story["user_id"])
    stack.fetch("postgres", "CHECKPOINT")

    holding = stack.files_with(PERSONAL)

    assert holding == set()
    if hometown.jaeger_answers():
        traces = eventually(
            lambda: json.dumps(hometown.traces_of_service("users-api"), ensure_ascii=False),
            lambda printed: story["user_id"] in printed,
            what="the traces of the user",
        )
        assert NAME not in traces


def test_the_scan_finds_text_that_is_stored_in_clear(stack: Stack, story: Json) -> None:
    """The negative control: the place where the user lived is not encrypted."""
    stack.fetch("postgres", "CHECKPOINT")

    holding = stack.files_with(traces_of([PLACE]))

    assert any(path.startswith("postgres") and "/base/" in path for path in holding)
    assert any(path.startswith("kafka/") and path.endswith(".log") for path in holding)


def test_the_user_is_counted_where_the_user_was(
    hometown: Hometown, story: Json, hour: datetime
) -> None:
    """Orders that were confirmed before stay counted."""
    eventually(
        lambda: hometown.hour(hour)["purchases"],
        lambda purchases: purchases == 1,
        what="the purchase of a deleted user",
    )
