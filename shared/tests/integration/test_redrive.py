"""A redrive continues a parked stream in exact order: repaired, passed over, or up to a failure."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from shared.eventsourcing.errors import VersionConflict
from shared.inbox import parked
from shared.inbox import redrive as redrive_module
from shared.inbox.consumer import Consumer, Delivery
from shared.inbox.parked import NotParked, OperatorAction
from shared.inbox.redrive import Redriven, redrive
from shared.messaging.messages import StreamKey
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Connection
from test_support.counter.counted_records import record, records
from test_support.counter.counter import TOPIC
from test_support.counter.desk import NAME, Desk
from test_support.waits import HANGS_AFTER_SECONDS

GARBAGE = b"\x00\xff garbage"
OPERATOR_ACTION = OperatorAction(by="jack", reason="a test")


async def sick(desk: Desk, *later: int) -> UUID:
    """A counter whose first message is garbage, and whose later ones wait."""
    counter = new_id()
    await desk.consumer.take([record(counter, 1, value=GARBAGE), *records(counter, *later)])
    return counter


async def edit(desk: Desk, counter: UUID, version: int, value: bytes) -> None:
    async with desk.pool.acquire() as connection, connection.transaction():
        await parked.edit(
            connection, NAME, StreamKey(TOPIC, counter), version, value, OPERATOR_ACTION
        )


async def repair(desk: Desk, counter: UUID, version: int = 1) -> bytes:
    value = record(counter, version).value or b""
    await edit(desk, counter, version, value)
    return value


async def discard(desk: Desk, counter: UUID, version: int) -> None:
    async with desk.pool.acquire() as connection, connection.transaction():
        await parked.discard(connection, NAME, StreamKey(TOPIC, counter), version, OPERATOR_ACTION)


async def audit(desk: Desk, counter: UUID) -> list[tuple[object, ...]]:
    rows = await desk.pool.fetch(
        "SELECT done_by, action, version, reason, value_before, value_after FROM parked_audit"
        " WHERE consumer = $1 AND stream_id = $2 ORDER BY number",
        NAME,
        counter,
    )
    return [tuple(row) for row in rows]


async def again(desk: Desk, counter: UUID, *, accept_gap: bool = False) -> Redriven:
    return await redrive(
        desk.consumer, desk.pool, StreamKey(TOPIC, counter), OPERATOR_ACTION, accept_gap=accept_gap
    )


async def test_repaired_messages_are_applied_in_order_and_the_stream_continues(desk: Desk) -> None:
    counter = await sick(desk, 2, 3)
    await repair(desk, counter)

    assert await again(desk, counter) == Redriven(passed=3, obstacle=None)

    assert await desk.effects(counter) == [1, 2, 3]
    assert await desk.reasons() == {}
    assert await desk.waiting(counter) == []
    await desk.consumer.take(records(counter, 3, 4))
    assert await desk.effects(counter) == [1, 2, 3, 4]


async def test_the_order_is_that_of_versions_however_the_messages_came(desk: Desk) -> None:
    counter = await sick(desk)
    for version in (4, 2, 3):
        await desk.consumer.take(records(counter, version))
    await repair(desk, counter)

    await again(desk, counter)

    assert await desk.effects(counter) == [1, 2, 3, 4]


async def test_a_message_that_came_after_its_gap_fills_it(desk: Desk) -> None:
    counter = new_id()
    await desk.consumer.take(records(counter, 1, 3))
    await desk.consumer.take(records(counter, 2))

    assert await again(desk, counter) == Redriven(passed=2, obstacle=None)

    assert await desk.effects(counter) == [1, 2, 3]


async def test_a_stream_that_is_still_sick_stays_with_all_that_waits(desk: Desk) -> None:
    counter = await sick(desk, 2)

    done = await again(desk, counter)

    assert done.passed == 0
    assert done.obstacle is not None
    assert done.obstacle.startswith("ValidationError: ")
    assert await desk.waiting(counter) == [1, 2]


async def test_the_first_that_fails_ends_a_redrive_and_those_before_are_applied(
    desk: Desk,
) -> None:
    counter = await sick(desk, 2)
    await desk.consumer.take([record(counter, 3, schema_version=2), record(counter, 4)])
    await repair(desk, counter)

    done = await again(desk, counter)

    assert done == Redriven(passed=2, obstacle="UnknownSchemaVersion: version 2 of counted")
    assert await desk.effects(counter) == [1, 2]
    assert await desk.waiting(counter) == [3, 4]
    assert await desk.reasons() == {counter: "UnknownSchemaVersion: version 2 of counted"}
    assert await desk.version(counter) == 2


async def test_a_failing_message_leaves_none_of_its_effects(desk: Desk) -> None:
    """Its reaction wrote before it raised."""
    counter = new_id()
    desk.poison = {counter}
    await desk.consumer.take(records(counter, 1))

    await again(desk, counter)

    assert await desk.effects(counter) == []


async def test_a_discarded_message_is_passed_over_and_does_not_come_back(desk: Desk) -> None:
    counter = await sick(desk, 2, 3)
    await discard(desk, counter, 1)
    await desk.consumer.take(records(counter, 1))

    assert await again(desk, counter) == Redriven(passed=3, obstacle=None)

    assert await desk.effects(counter) == [2, 3]
    await desk.consumer.take(records(counter, 1))
    assert await desk.effects(counter) == [2, 3]


async def test_a_gap_is_passed_only_when_it_is_accepted(desk: Desk) -> None:
    counter = new_id()
    await desk.consumer.take(records(counter, 1, 3, 4))

    refused = await again(desk, counter)
    assert refused == Redriven(passed=0, obstacle="gap: version 2 is missing")
    assert await desk.effects(counter) == [1]

    accepted = await again(desk, counter, accept_gap=True)
    assert accepted == Redriven(passed=2, obstacle=None)
    assert await desk.effects(counter) == [1, 3, 4]


async def test_a_gap_behind_a_discarded_message_is_seen_as_well(desk: Desk) -> None:
    counter = await sick(desk, 3)
    await discard(desk, counter, 1)

    assert await again(desk, counter) == Redriven(passed=1, obstacle="gap: version 2 is missing")


async def test_every_action_is_audited(desk: Desk) -> None:
    counter = await sick(desk, 2)
    value = await repair(desk, counter)
    await discard(desk, counter, 2)
    await again(desk, counter)

    second = record(counter, 2).value
    assert await audit(desk, counter) == [
        ("jack", "edit", 1, "a test", GARBAGE, value),
        ("jack", "discard", 2, "a test", second, None),
        ("jack", "redrive", 2, "a test", None, None),
    ]


async def test_a_redrive_over_gaps_is_audited_as_one(desk: Desk) -> None:
    counter = new_id()
    await desk.consumer.take(records(counter, 2))

    await again(desk, counter, accept_gap=True)

    assert await audit(desk, counter) == [("jack", "redrive over gaps", 2, "a test", None, None)]


async def test_what_does_not_wait_cannot_be_changed(desk: Desk) -> None:
    counter, unknown = await sick(desk), new_id()

    with pytest.raises(NotParked, match=f"stream {unknown} is not parked"):
        await again(desk, unknown)
    with pytest.raises(NotParked, match=f"stream {unknown} is not parked"):
        await edit(desk, unknown, 1, b"{}")
    with pytest.raises(NotParked, match="no version 7"):
        await discard(desk, counter, 7)

    assert await audit(desk, counter) == []
    assert await audit(desk, unknown) == []


async def test_a_transient_failure_rolls_back_a_redrive(desk: Desk) -> None:
    counter = await sick(desk, 2)
    await repair(desk, counter)
    desk.errors = [VersionConflict(counter, 1)]

    with pytest.raises(VersionConflict):
        await again(desk, counter)

    assert await desk.effects(counter) == []
    assert await desk.waiting(counter) == [1, 2]
    assert [row[1] for row in await audit(desk, counter)] == ["edit"]
    await again(desk, counter)
    assert await desk.effects(counter) == [1, 2]


async def test_a_long_queue_is_taken_in_several_transactions(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrive_module, "MESSAGES_MAX", 3)
    counter = await sick(desk, *range(2, 8))
    await repair(desk, counter)

    assert await again(desk, counter) == Redriven(passed=7, obstacle=None)

    assert await desk.effects(counter) == [1, 2, 3, 4, 5, 6, 7]
    assert [row[2] for row in await audit(desk, counter)] == [1, 3, 6, 7]


async def test_the_relay_is_notified_after_a_redrive(desk: Desk) -> None:
    counter = await sick(desk)
    await repair(desk, counter)
    before = desk.notifier.count

    await again(desk, counter)

    assert desk.notifier.count == before + 1


@asynccontextmanager
async def held_redrive(desk: Desk, counter: UUID) -> AsyncIterator[None]:
    """A redrive is in the middle of its first message inside, and at its end afterwards."""
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow(connection: Connection, deliveries: Sequence[Delivery]) -> None:
        begun.set()
        await may_end.wait()
        await desk.react(connection, deliveries)

    reactions = {"users.v1": {"counted": [slow]}}
    slowly = Consumer(NAME, desk.pool, reactions, desk.write_dead_letters, desk.notifier)
    redriving = asyncio.create_task(
        redrive(slowly, desk.pool, StreamKey(TOPIC, counter), OPERATOR_ACTION)
    )
    await asyncio.wait_for(begun.wait(), HANGS_AFTER_SECONDS)
    yield
    may_end.set()
    await asyncio.wait_for(redriving, HANGS_AFTER_SECONDS)


async def test_a_worker_waits_for_the_end_of_a_redrive_and_sees_no_gap_then(desk: Desk) -> None:
    """What it knows of the stream must be younger than the redrive that it waited for."""
    counter = await sick(desk, 2)
    await repair(desk, counter)

    async with held_redrive(desk, counter):
        live = asyncio.create_task(desk.consumer.take(records(counter, 3)))
        while not await desk.pool.fetchval(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
        ):
            await asyncio.sleep(0.01)
        assert not live.done()

    await asyncio.wait_for(live, HANGS_AFTER_SECONDS)
    assert await desk.effects(counter) == [1, 2, 3]
    assert await desk.reasons() == {}
    assert len(desk.letters) == 1


async def test_other_streams_continue_during_a_redrive(desk: Desk) -> None:
    counter, other = await sick(desk), new_id()
    await repair(desk, counter)

    async with held_redrive(desk, counter):
        await asyncio.wait_for(desk.consumer.take(records(other, 1, 2)), HANGS_AFTER_SECONDS)

    assert await desk.effects(other) == [1, 2]
