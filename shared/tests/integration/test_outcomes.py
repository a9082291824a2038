"""What is logged and counted is what was committed, with the ids that find it again."""

import json
import logging

import pytest

from shared.eventsourcing.event_store import EventStore
from shared.inbox import outcomes
from shared.runtime import logs
from shared.runtime.identifiers import new_id
from test_support.counter.counted_records import record, records
from test_support.counter.counter import Counted, counted, some_metadata
from test_support.counter.desk import Desk


class Counts:
    """In place of a counter."""

    def __init__(self) -> None:
        self.all: dict[str, int] = {}

    def add(self, number: int, attributes: dict[str, str]) -> None:
        outcome = attributes["outcome"]
        self.all[outcome] = self.all.get(outcome, 0) + number


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    counter = Counts()
    monkeypatch.setattr(outcomes, "MESSAGES", counter)
    return counter


def decided(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """The lines of what was decided."""
    formatter = logs.create_formatter(is_text=False)
    lines = "\n".join(formatter.format(each) for each in caplog.records).splitlines()
    return [line for line in map(json.loads, lines) if line["message"] == "decided"]


async def test_a_message_that_was_decided_on_is_a_line(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    counter = new_id()

    await desk.consumer.take(records(counter, 1, 2, 2))

    lines = decided(caplog)
    assert [each["stream_version"] for each in lines] == [1, 2]
    assert {each["stream_id"] for each in lines} == {str(counter)}
    assert len({each["event_id"] for each in lines}) == 2


async def test_an_attempt_that_is_rolled_back_leaves_no_line_and_no_count(
    desk: Desk, caplog: pytest.LogCaptureFixture, counts: Counts
) -> None:
    caplog.set_level(logging.INFO)
    desk.errors = [ConnectionError("unavailable"), ConnectionError("still")]

    await desk.consumer.take(records(new_id(), 1))

    assert desk.attempts == 3
    assert len(decided(caplog)) == 1
    assert counts.all == {"applied": 1}


async def test_every_message_of_a_batch_counts_with_its_outcome(desk: Desk, counts: Counts) -> None:
    sick, counter = new_id(), new_id()
    desk.poison = {sick}

    await desk.consumer.take([*records(counter, 1, 1), record(sick, 1), record(sick, 2)])

    assert counts.all == {
        "applied": 1,
        "repeated": 1,
        "dead-letter": 1,
        "parked": 1,
        "waiting": 1,
    }


async def test_what_a_request_records_is_a_line(
    store: EventStore[Counted], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    counter = new_id()

    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())

    [line] = [each for each in caplog.records if each.message == "recorded"]
    [event] = await store.read(counter)
    assert (line.stream_id, line.stream_version) == (str(counter), 1)  # type: ignore[attr-defined]
    assert line.event_id == str(event.event_id)  # type: ignore[attr-defined]
