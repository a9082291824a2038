"""The verdict on each message, by what was consumed of its stream before."""

from typing import cast
from uuid import UUID

import pytest

from shared.inbox.inbox import Gap, Inbox, Next, Repeated, Verdict, Waiting
from shared.messaging.messages import Message
from shared.messaging.records import parse_message
from shared.runtime.postgres import Connection
from test_support.counter.counted_records import record

COUNTER, PARKED, UNKNOWN = UUID(int=1), UUID(int=2), UUID(int=3)
NO_CONNECTION = cast(Connection, None)


@pytest.fixture
def inbox() -> Inbox:
    """Of both streams that it knows, versions up to 4 were consumed."""
    return Inbox(
        connection=NO_CONNECTION,
        consumer="users-worker",
        versions_before={COUNTER: 4, PARKED: 4},
        waiting={PARKED},
    )


def message(stream_id: UUID, version: int, previous: int | None = None) -> Message:
    return parse_message(record(stream_id, version, previous=previous))


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        (message(COUNTER, 3), Repeated()),
        (message(COUNTER, 4), Repeated()),
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
    inbox.mark_consumed(message(COUNTER, 5))

    assert inbox.verdict(message(COUNTER, 5)) == Repeated()
    assert inbox.verdict(message(COUNTER, 6)) == Next()
