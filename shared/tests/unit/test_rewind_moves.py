"""Where a worker is moved to, and what a person reads about it before it is."""

import argparse
from datetime import UTC, datetime

import pytest
from aiokafka import TopicPartition

from shared.inbox import rewind
from shared.inbox.rewind import Move

PARTITION = TopicPartition("users.v1", 2)


def move(now: int, then: int) -> Move:
    return Move(partition=PARTITION, now=now, then=then)


@pytest.mark.parametrize("text", ["2016-11-11T04:03Z", "2016-11-11T12:03:00+08:00"])
def test_a_time_has_a_zone(text: str) -> None:
    assert rewind.parse_destination(text) == datetime(2016, 11, 11, 4, 3, tzinfo=UTC)


@pytest.mark.parametrize("text", ["earliest", "latest"])
def test_an_end_of_the_log_has_a_name(text: str) -> None:
    assert rewind.parse_destination(text) == text


@pytest.mark.parametrize("text", ["2016-11-11T04:03", "11.11.2016", "first", "495", ""])
def test_anything_else_is_refused_with_what_it_could_be(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="latest, or a time with its zone"):
        rewind.parse_destination(text)


def test_each_partition_has_a_line_and_the_whole_a_sum() -> None:
    moves = [move(595, 495), move(7, 7), move(3, 0)]

    shown = list(rewind.format_moves("users-worker", moves, is_applied=False))
    done = list(rewind.format_moves("users-worker", moves, is_applied=True))

    assert shown == [
        "users.v1/2: 595 -> 495, 100 records again",
        "users.v1/2: stays at 7",
        "users.v1/2: 3 -> 0, 3 records again",
        "users-worker would read 103 records again: add --apply",
    ]
    assert done[-1] == "users-worker reads 103 records again, from its next start on"


def test_records_that_would_be_skipped_are_counted_apart() -> None:
    shown = list(rewind.format_moves("users-worker", [move(5, 9), move(3, 1)], is_applied=False))

    assert shown == [
        "users.v1/2: 5 -> 9, 4 records skipped",
        "users.v1/2: 3 -> 1, 2 records again",
        "users-worker would read 2 records again, and skip 4: add --apply",
    ]
