"""The verdict on each message, by what was consumed of its stream before."""

from dataclasses import replace
from typing import cast
from uuid import UUID

import pytest

from shared.inbox.inbox import (
    Consumed,
    Gap,
    Inbox,
    Next,
    OtherHistory,
    Repeated,
    Verdict,
    Waiting,
)
from shared.messaging.messages import Message, StreamKey
from shared.messaging.records import parse_message
from shared.runtime.postgres import Connection
from test_support.counter.counted_records import record
from test_support.counter.counter import TOPIC

COUNTER, PARKED, UNKNOWN = UUID(int=1), UUID(int=2), UUID(int=3)
NO_CONNECTION = cast(Connection, None)


def message(stream_id: UUID, version: int, previous: int | None = None) -> Message:
    return parse_message(record(stream_id, version, previous=previous))


FOURTH = message(COUNTER, 4)


@pytest.fixture
def inbox() -> Inbox:
    """Of both streams that it knows, versions up to 4 were consumed."""
    return Inbox(
        connection=NO_CONNECTION,
        consumer="users-worker",
        versions_before={
            StreamKey(TOPIC, COUNTER): Consumed(4, FOURTH.event_id),
            StreamKey(TOPIC, PARKED): Consumed(4, None),
        },
        waiting={StreamKey(TOPIC, PARKED)},
    )


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        (message(COUNTER, 3), Repeated()),
        (FOURTH, Repeated()),
        (message(COUNTER, 5), Next()),
        (message(COUNTER, 9, previous=4), Next()),
        (message(COUNTER, 6), Gap(5)),
        (message(UNKNOWN, 1), Next()),
        (message(UNKNOWN, 2), Gap(1)),
        (message(PARKED, 4), Repeated()),
        (message(PARKED, 5), Waiting()),
        (message(PARKED, 7), Waiting()),
    ],
)
def test_the_verdict_follows_from_the_versions_that_were_consumed(
    inbox: Inbox, message: Message, verdict: Verdict
) -> None:
    assert inbox.verdict(message) == verdict


def test_a_message_repeats_one_of_the_same_transaction(inbox: Inbox) -> None:
    fifth = message(COUNTER, 5)
    inbox.mark_consumed(fifth)

    assert inbox.verdict(fifth) == Repeated()
    assert inbox.verdict(message(COUNTER, 6)) == Next()


def test_another_event_under_the_version_that_was_consumed_last_is_no_repeat(inbox: Inbox) -> None:
    verdict = inbox.verdict(replace(FOURTH, event_id=UUID(int=9)))

    assert isinstance(verdict, OtherHistory)
    assert verdict == OtherHistory(4, UUID(int=9), FOURTH.event_id)
    assert "run `make republish`" in verdict.reason


def test_a_stream_of_another_topic_is_another_one(inbox: Inbox) -> None:
    """A user can have the id of an order."""
    first = replace(message(COUNTER, 1), topic="orders.v1", event_id=UUID(int=9))

    assert inbox.verdict(first) == Next()
    inbox.mark_consumed(first)
    assert inbox.verdict(message(COUNTER, 5)) == Next()
