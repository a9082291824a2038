"""The answers by arrival and by event time: equal until a move is announced late."""

from datetime import timedelta
from typing import Any

from test_support.system.clients import Hometown, Json
from test_support.system.eventually import eventually
from test_support.system.sample import Sample
from test_support.system.stack import Stack

SAMPLE: dict[str, Any] = {"local_buyers": 4, "purchases": 4, "quantity": 12, "amount": "44506.56"}
HERE = SAMPLE | {"purchases": 5, "quantity": 13, "amount": "49895.44"}
SPARK = SAMPLE | {"purchases": 5, "quantity": 13, "amount": "49395.44"}


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
