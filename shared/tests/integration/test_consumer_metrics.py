"""What a consumer counts is what it has committed, by what became of each message."""

from collections.abc import Sequence

import pytest

from shared.inbox import consumer
from shared.inbox.consumer import RETRIES, Consumer
from shared.inbox.outcomes import MESSAGES
from shared.messaging.messages import Message
from shared.runtime import failpoints
from shared.runtime.failpoints import Failpoint
from shared.runtime.identifiers import new_id
from test_support.counted import counting
from test_support.counter.counted_records import record, records
from test_support.counter.counter import TOPIC
from test_support.counter.desk import NAME, Desk


@pytest.fixture
def failed_commits(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Let transactions fail when their effects are written, once for each error in the list."""
    errors: list[Exception] = []

    def fail(point: Failpoint) -> None:
        if point is Failpoint.EFFECTS_WRITTEN and errors:
            raise errors.pop()

    monkeypatch.setattr(failpoints, "hit", fail)
    return errors


async def test_each_message_of_a_batch_counts_with_its_outcome(desk: Desk) -> None:
    sick, counter = new_id(), new_id()
    desk.poison = {sick}

    with counting(MESSAGES) as counted:
        await desk.consumer.take([*records(counter, 1, 1), record(sick, 1), record(sick, 2)])

    assert counted == {
        (TOPIC, "applied"): 1,
        (TOPIC, "repeated"): 1,
        (TOPIC, "dead-letter"): 1,
        (TOPIC, "parked"): 1,
        (TOPIC, "waiting"): 1,
    }


async def test_a_gap_counts_as_parked(desk: Desk) -> None:
    with counting(MESSAGES) as counted:
        await desk.consumer.take([record(new_id(), 3, previous=2)])

    assert counted == {(TOPIC, "parked"): 1}


async def test_an_attempt_that_is_rolled_back_counts_as_a_retry_alone(
    desk: Desk, failed_commits: list[Exception]
) -> None:
    failed_commits += [ConnectionError("unavailable"), ConnectionError("still")]

    with counting(MESSAGES) as counted, counting(RETRIES) as retries:
        await desk.consumer.take(records(new_id(), 1))

    assert desk.attempts == 3
    assert counted == {(TOPIC, "applied"): 1}
    assert retries == {(): 2}


async def test_a_batch_is_measured_when_it_is_committed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, failed_commits: list[Exception]
) -> None:
    sizes: list[float] = []
    monkeypatch.setattr(consumer.BATCH_SIZE, "record", sizes.append)
    failed_commits += [ConnectionError("unavailable")]

    await desk.consumer.take(records(new_id(), 1, 2))

    assert sizes == [2]


async def test_what_was_applied_is_shown_after_its_commit_and_once(
    desk: Desk, failed_commits: list[Exception]
) -> None:
    applied: list[int] = []
    counter = new_id()

    def note(messages: Sequence[Message]) -> None:
        applied.extend(each.stream_version for each in messages)

    observed = Consumer(
        NAME,
        desk.pool,
        {TOPIC: {"counted": [desk.react]}},
        desk.write_dead_letters,
        desk.notifier,
        on_applied=note,
    )
    failed_commits += [ConnectionError("unavailable")]
    await observed.take(records(counter, 1, 2))
    await observed.take(records(counter, 2, 3))

    assert applied == [1, 2, 3]


async def test_a_consumer_that_has_consumed_nothing_shows_each_outcome_as_0(desk: Desk) -> None:
    desk.consumer_of("orders.v1")

    outcomes = {outcome for topic, outcome in MESSAGES.totals if topic == "orders.v1"}
    assert outcomes == {"applied", "repeated", "waiting", "parked", "dead-letter"}
