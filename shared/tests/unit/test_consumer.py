"""Each record takes effect, is skipped, or is set aside: no exception leaves `take`."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from shared import consumer as consumer_room
from shared.consumer import Consumer, IncomingRecord, Reaction
from shared.event_store import AlreadyConsumed
from shared.identifiers import new_id
from shared.kafka import OutgoingRecord
from shared.messages import Message

TOPIC = "users.v1"


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_room, "BACKOFF_SECONDS_FIRST", 0.001)


def record(type_: str = "counted", value: bytes | None = b"{}") -> IncomingRecord:
    headers = {
        "ce_id": str(new_id()),
        "ce_type": type_,
        "ce_schemaversion": "1",
        "ce_streamid": str(new_id()),
        "ce_streamversion": "1",
        "ce_correlationid": str(new_id()),
        "ce_time": "2016-11-11T00:00:00Z",
    }
    return IncomingRecord(
        topic=TOPIC,
        partition=2,
        offset=7,
        key=b"key",
        value=value,
        headers=[(name, value.encode()) for name, value in headers.items()],
    )


class Desk:
    """A consumer with one reaction, and what came of it."""

    def __init__(self, *errors: Exception, dead_letter_errors: Sequence[Exception] = ()) -> None:
        self.errors = list(errors)
        self.dead_letter_errors = list(dead_letter_errors)
        self.taken: list[Message] = []
        self.set_aside: list[OutgoingRecord] = []
        reactions: dict[str, dict[str, list[Reaction]]] = {TOPIC: {"counted": [self.react]}}
        self.consumer = Consumer("users-worker", reactions, self.put_aside)

    async def react(self, message: Message) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.taken.append(message)

    async def put_aside(self, letter: OutgoingRecord) -> None:
        if self.dead_letter_errors:
            raise self.dead_letter_errors.pop(0)
        self.set_aside.append(letter)


async def test_a_message_takes_effect() -> None:
    desk = Desk()

    await desk.consumer.take(record())

    assert [message.stream_version for message in desk.taken] == [1]
    assert desk.set_aside == []


async def test_a_type_that_nobody_cares_about_is_skipped() -> None:
    desk = Desk()

    await desk.consumer.take(record(type_="unheard-of"))

    assert desk.taken == []
    assert desk.set_aside == []


async def test_a_repeated_message_is_done() -> None:
    desk = Desk(AlreadyConsumed())

    await desk.consumer.take(record())

    assert desk.set_aside == []


async def test_a_transient_failure_is_tried_again_in_place() -> None:
    desk = Desk(ConnectionError("away"), ConnectionError("still away"))

    await desk.consumer.take(record())

    assert len(desk.taken) == 1
    assert desk.set_aside == []


async def test_a_poison_record_is_set_aside_untouched_with_its_reason() -> None:
    desk, poison = Desk(ValueError("cannot be")), record(value=b"\x00garbage")

    await desk.consumer.take(poison)

    [letter] = desk.set_aside
    headers = dict(letter.headers)
    assert letter.topic == "users.v1.users-worker.dlq"
    assert (letter.key, letter.value, letter.partition) == (b"key", b"\x00garbage", 2)
    assert headers["dlq_reason"] == b"ValueError: cannot be"
    assert (headers["dlq_topic"], headers["dlq_offset"]) == (b"users.v1", b"7")
    assert list(letter.headers)[: len(poison.headers)] == list(poison.headers)


@pytest.mark.parametrize(
    "malformed",
    [
        replace(record(), headers=[]),
        replace(record(), key=None),
        replace(record(), value=None),
        replace(record(), headers=[*record().headers, ("ce_id", b"\xff")]),
        replace(record(), headers=[*record().headers, ("ce_streamversion", b"seven")]),
        replace(record(), headers=[*record().headers, ("ce_id", None)]),  # type: ignore[list-item]
    ],
    ids=["no headers", "no key", "no value", "not utf-8", "not a number", "header without value"],
)
async def test_a_malformed_record_is_set_aside(malformed: IncomingRecord) -> None:
    desk = Desk()

    await desk.consumer.take(malformed)

    assert len(desk.set_aside) == 1
    assert desk.taken == []


async def test_no_record_is_skipped_while_the_dead_letter_topic_is_away() -> None:
    """Trap T11: a swallowed failure here would lose the record."""
    desk = Desk(ValueError("cannot be"), dead_letter_errors=[ConnectionError("away")] * 3)

    await desk.consumer.take(record())

    assert len(desk.set_aside) == 1
