"""The answers by arrival and by event time: equal until a move is announced late."""

from datetime import timedelta
from typing import Any

import pytest

from test_support.system.clients import Hometown, Json
from test_support.system.eventually import eventually
from test_support.system.sample import Sample
from test_support.system.stack import Stack

SAMPLE: dict[str, Any] = {"local_buyers": 4, "purchases": 4, "quantity": 12, "amount": "44506.56"}
HERE = SAMPLE | {"purchases": 5, "quantity": 13, "amount": "49895.44"}
SPARK = SAMPLE | {"purchases": 5, "quantity": 13, "amount": "49395.44"}


@pytest.mark.long
def test_the_answers_differ_once_a_move_is_announced_late(
    stack: Stack, hometown: Hometown, sample: Sample
) -> None:
    """Vector V7: Jack's orders of 00:31 are counted when his move at 00:30 is announced."""
    assert hometown.addresses["analytics-faust"] in stack.make_output("compare")

    def differences() -> list[Json]:
        found: list[Json] = hometown.differences(sample.hour, sample.hour + timedelta(hours=1))[
            "hours"
        ]
        return found

    def counted(expected: dict[str, Any]) -> None:
        eventually(
            lambda: hometown.hour_by_arrival(sample.hour),
            lambda answer: all(answer[name] == value for name, value in expected.items()),
            what=f"an answer by arrival with {expected}",
        )

    counted(SAMPLE)
    eventually(differences, lambda found: found == [], what="equal answers")

    for item in ("ipad", "iphone"):
        order = hometown.place_order(sample.users["Jack"], [(sample.items[item], 1)], sample.at(31))
        assert hometown.wait_for_decision(order["order_id"])["status"] == "confirmed"
    counted(HERE)
    eventually(differences, lambda found: found == [], what="equal answers")

    hometown.move_user(sample.users["Jack"], address="SH", effective_at=sample.at(30).isoformat())
    [difference] = eventually(differences, bool, what="a difference")

    assert (difference["here"], difference["spark"]) == (HERE, SPARK)
    assert "move" in difference["reasons"]

    refused = stack.make("compare", "args=--reset")
    assert refused.returncode != 0
    assert "nothing was reset: 1 process is in the group analytics-faust" in refused.stderr
    with stack.stopped("analytics-faust"):
        assert "counts again from its next start on" in stack.make_output("compare", "args=--reset")
    # Jack's orders are read again, and joined with where he has moved to meanwhile.
    eventually(
        lambda: hometown.hour_by_arrival(sample.hour),
        lambda answer: answer["amount"] not in (HERE["amount"], "0.00"),
        what="another answer, as everything was read again",
    )
