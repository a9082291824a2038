"""Each end of a hostile record that is wrong is noticed by the drill."""

from collections import Counter

import pytest

from shared.inbox.dead_letters import to_dead_letter
from shared.messaging import wire
from shared.messaging.messages import ReadHeader
from shared.messaging.records import IncomingRecord
from verification.drill.hostile_records import End, Ends, Place, compare, get_origin

PLACE = Place("users.v1", 1, 7)
LETTER = ("users-worker", PLACE, End.LETTER)
PARKED = ("users-worker", PLACE, End.PARKED)
EXPECTED: Ends = Counter([LETTER, PARKED])


def test_nothing_is_wrong_when_each_record_has_its_ends() -> None:
    assert compare(EXPECTED, Counter([PARKED, LETTER])) == []


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ([PARKED], "dead letter of users.v1/1/7 by users-worker is missing"),
        ([LETTER], "parked of users.v1/1/7 by users-worker is missing"),
        ([LETTER, LETTER, PARKED], "dead letter of users.v1/1/7 by users-worker is too much"),
        (
            [LETTER, PARKED, ("orders-worker", PLACE, End.LETTER)],
            "dead letter of users.v1/1/7 by orders-worker is too much",
        ),
    ],
    ids=["no letter", "not parked", "a letter twice", "another reader"],
)
def test_an_end_that_is_wrong_is_noticed(found: list[tuple[str, Place, End]], line: str) -> None:
    """The negative control."""
    assert compare(EXPECTED, Counter(found)) == [line]


@pytest.mark.parametrize("size", [1, 2_000_000], ids=["small", "too large for a letter"])
def test_the_origin_of_a_letter_is_not_what_the_record_pretends(size: int) -> None:
    pretended: list[ReadHeader] = [
        ("dlq_topic", b"orders.v1"),
        ("dlq_offset", b""),
        ("dlq_partition", b"\xff"),
    ]
    record = IncomingRecord(
        topic="users.v1", partition=1, offset=7, key=None, value=bytes(size), headers=pretended
    )

    letter = to_dead_letter(record, "users-worker", "malformed")

    assert get_origin(wire.unpack(letter.headers)) == PLACE
