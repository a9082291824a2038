"""Each message is applied once and in order, waits, or becomes a dead letter; nothing else."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import asyncpg
import pytest

from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import VersionConflict
from shared.eventsourcing.handler import CausedCommand
from shared.inbox import parked
from shared.inbox.consumer import (
    REASON_CHARACTERS_MAX,
    Consumer,
    Delivery,
    deciding,
    merge_reactions,
    to_reason,
)
from shared.inbox.inbox import ConsumedElsewhere, Inbox
from shared.inbox.parked import OperatorAction
from shared.inbox.redrive import redrive
from shared.messaging import wire
from shared.messaging.messages import Message, StreamKey
from shared.messaging.records import IncomingRecord, parse_message
from shared.messaging.wire import OutgoingRecord
from shared.projections.read_models import ReadModel
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Connection, Restored, RestoredGuard
from test_support.counter.counted_records import record, records
from test_support.counter.counter import TOPIC, Counted, counted, store_of
from test_support.counter.desk import NAME, Desk
from test_support.waits import HANGS_AFTER_SECONDS
from test_support.written_log import written_log

ToCommand = Callable[[Delivery], CausedCommand[int]]

OTHER_TOPIC = "orders.v1"
OPERATOR_ACTION = OperatorAction(by="jack", reason="a test")


def of_another_event(whole: IncomingRecord) -> IncomingRecord:
    """The same version, under another id."""
    headers = [(n, str(new_id()).encode() if n == "ce_id" else v) for n, v in whole.headers]
    return replace(whole, headers=headers)


async def test_a_batch_is_applied_in_its_order(desk: Desk) -> None:
    one, other = new_id(), new_id()

    await desk.consumer.take(
        [record(one, 1), record(other, 1), record(one, 2), record(one, 5, previous=2)]
    )

    assert await desk.effects(one) == [1, 2, 5]
    assert await desk.effects(other) == [1]
    assert await desk.version(one) == 5
    assert desk.letters == []
    assert desk.notifier.count == 1


async def test_a_reaction_takes_all_messages_of_a_batch_at_once(desk: Desk) -> None:
    one, other, sizes = new_id(), new_id(), []

    async def react(connection: Connection, deliveries: Sequence[Delivery]) -> None:
        sizes.append([each.message.stream_version for each in deliveries])

    reactions = {TOPIC: {"counted": [react], "moved": [react]}}
    consumer = Consumer(NAME, desk.pool, reactions, desk.write_dead_letters, desk.notifier)
    await consumer.take([*records(one, 1, 1), record(one, 2, type_="moved"), record(other, 1)])

    assert sizes == [[1, 2, 1]]
    assert desk.notifier.count == 0, "nothing was recorded: the relay has nothing to publish"


def count_from(sign: int) -> ToCommand:
    def to_command(delivery: Delivery) -> CausedCommand[int]:
        message = delivery.message
        return delivery.cause(message.stream_id, sign * message.stream_version)

    return to_command


async def test_messages_of_all_types_are_decided_on_in_their_order(desk: Desk) -> None:
    """A batch is taken reaction by reaction; the reactions of an aggregate are one."""
    one, other, store = new_id(), new_id(), store_of(desk.pool)
    decider: Decider[int, int, Counted] = Decider(
        initial=0,
        decide=lambda number, _: counted(other, number),
        evolve=lambda _, event: event.number,
    )
    commands = {TOPIC: {"counted": count_from(1), "moved": count_from(-1)}}
    reactions = deciding(store, decider, commands)

    consumer = Consumer(NAME, desk.pool, reactions, desk.write_dead_letters, desk.notifier)
    await consumer.take(
        [record(one, 1, type_="moved"), record(other, 1), record(other, 2, type_="moved")]
    )

    assert [each.event.number for each in await store.read(other)] == [1, -2]


async def test_a_repeated_message_has_one_effect(desk: Desk) -> None:
    counter = new_id()

    await desk.consumer.take(records(counter, 1, 1, 2))
    await desk.consumer.take(records(counter, 1, 2, 3, 2))

    assert await desk.effects(counter) == [1, 2, 3]


async def test_trap_t6_a_repeated_message_has_one_effect_also_after_a_restart(desk: Desk) -> None:
    counter = new_id()
    await desk.consumer.take(records(counter, 1))

    await Desk(desk.pool).consumer.take(records(counter, 1, 2))

    assert await desk.effects(counter) == [1, 2]


async def test_another_event_under_a_consumed_version_parks_its_stream_alone(desk: Desk) -> None:
    """As after the event store of the sender was restored to an older moment, or from a writer
    that is none."""
    counter = new_id()
    await desk.consumer.take(records(counter, 1, 2))
    other, stream = new_id(), StreamKey(TOPIC, counter)

    await desk.consumer.take(
        [of_another_event(record(counter, 2)), record(counter, 3), record(other, 1)]
    )

    assert "an event store was restored to an older moment" in (await desk.reasons())[counter]
    assert await desk.effects(counter) == [1, 2]
    assert await desk.effects(other) == [1]
    stopped = await redrive(desk.consumer, desk.pool, stream, OPERATOR_ACTION)
    assert stopped.obstacle is not None
    assert await desk.effects(counter) == [1, 2]
    async with desk.pool.acquire() as connection, connection.transaction():
        await parked.discard(connection, NAME, stream, 2, OPERATOR_ACTION)

    done = await redrive(desk.consumer, desk.pool, stream, OPERATOR_ACTION)
    await desk.consumer.take([record(counter, 4)])

    assert done.obstacle is None
    assert await desk.effects(counter) == [1, 2, 3, 4]


async def test_without_the_id_of_its_event_another_one_counts_as_a_repeat(desk: Desk) -> None:
    """The negative control."""
    counter = new_id()
    await desk.consumer.take(records(counter, 1))
    await desk.pool.execute("UPDATE consumed_versions SET event_id = NULL")

    await desk.consumer.take([of_another_event(record(counter, 1)), record(counter, 2)])

    assert await desk.effects(counter) == [1, 2]
    assert await desk.reasons() == {}


async def test_streams_of_two_topics_with_one_id_are_two(desk: Desk) -> None:
    """The id of a user can be that of an order: both are applied, and one can be parked alone."""
    counter = new_id()
    here = records(counter, 1, 2, 3)
    there = [replace(of_another_event(each), topic=OTHER_TOPIC) for each in here]
    there[1] = replace(there[1], value=b"garbage")
    consumer = desk.consumer_of(TOPIC, OTHER_TOPIC)

    await consumer.take([each for pair in zip(here, there, strict=True) for each in pair])

    assert await desk.effects(counter) == [1, 1, 2, 3]
    [waiting] = await parked.list_streams(desk.pool, NAME)
    assert waiting.key == StreamKey(OTHER_TOPIC, counter)
    async with desk.pool.acquire() as connection, connection.transaction():
        await parked.discard(connection, NAME, waiting.key, 2, OPERATOR_ACTION)
    done = await redrive(consumer, desk.pool, waiting.key, OPERATOR_ACTION)
    assert done.obstacle is None
    assert await desk.effects(counter) == [1, 1, 2, 3, 3]


async def test_what_a_release_before_topics_has_consumed_is_not_applied_again(desk: Desk) -> None:
    counter = new_id()
    await desk.consumer.take(records(counter, 1, 2))
    await desk.pool.execute("UPDATE consumed_versions SET topic = ''")

    await desk.consumer.take(records(counter, 2, 3))
    await desk.consumer.take(records(counter, 3))

    assert await desk.effects(counter) == [1, 2, 3]
    known = await desk.pool.fetch("SELECT topic, version FROM consumed_versions")
    assert [tuple(row) for row in known] == [(TOPIC, 3)]


async def test_a_version_that_the_release_before_has_written_has_no_id_to_compare(
    desk: Desk,
) -> None:
    counter = new_id()
    await desk.consumer.take(records(counter, 1))
    await desk.pool.execute("UPDATE consumed_versions SET version = 2")

    await desk.consumer.take(records(counter, 2, 3))

    assert await desk.effects(counter) == [1, 3]


async def test_without_its_stored_version_a_repeated_message_has_two_effects(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""

    async def forget(inbox: Inbox) -> None:
        """Writes nothing."""

    monkeypatch.setattr(Inbox, "write_versions", forget)
    counter = new_id()

    for _ in range(2):
        await desk.consumer.take(records(counter, 1))

    assert await desk.effects(counter) == [1, 1]


async def test_a_type_without_reaction_only_has_its_version_stored(desk: Desk) -> None:
    counter = new_id()

    await desk.consumer.take([record(counter, 1, type_="user-moved", schema_version=9)])
    await desk.consumer.take([record(counter, 2)])

    assert await desk.effects(counter) == [2]
    assert desk.letters == []


async def test_an_unknown_type_becomes_a_dead_letter_and_its_stream_continues(desk: Desk) -> None:
    counter = new_id()

    await desk.consumer.take([record(counter, 1, type_="unheard-of"), record(counter, 2)])

    assert await desk.effects(counter) == [2]
    assert desk.letter_reasons() == ["unknown type: unheard-of"]
    assert await desk.reasons() == {}


async def test_malformed_records_of_a_batch_have_their_letters_written_together(
    desk: Desk,
) -> None:
    """A write has a producer of its own: one for each letter would hold up what comes after."""
    counter, pages = new_id(), []
    malformed = [replace(record(counter, 1), key=None)] * 101

    async def write_dead_letters(letters: Sequence[OutgoingRecord]) -> None:
        pages.append(len(letters))

    reactions = {TOPIC: {"counted": [desk.react]}}
    consumer = Consumer(NAME, desk.pool, reactions, write_dead_letters, desk.notifier)
    await consumer.take([*malformed, record(counter, 1)])

    assert pages == [50, 50, 1]
    assert await desk.effects(counter) == [1]


async def test_trap_t11_a_malformed_record_is_a_dead_letter_untouched_and_others_continue(
    desk: Desk,
) -> None:
    counter = new_id()
    garbage = replace(record(counter, 1), key=None, value=b"\x00\xff", headers=[("h", b"\xff")])

    await desk.consumer.take([garbage, *records(counter, 1, 2)])

    [letter] = desk.letters
    headers = wire.unpack(letter.headers)
    assert letter.topic == "users.v1.users-worker.dlq"
    assert (letter.key, letter.value, letter.partition) == (None, b"\x00\xff", 2)
    assert headers[0] == ("h", b"\xff")
    reason = dict(headers)
    assert reason["dlq_reason"] == b"malformed: no key"
    assert (reason["dlq_topic"], reason["dlq_partition"]) == (b"users.v1", b"2")
    assert reason["dlq_offset"] == b"1"
    assert await desk.effects(counter) == [1, 2]


async def test_a_transient_failure_rolls_back_the_whole_batch_and_retries_it(
    desk: Desk,
) -> None:
    one, other = new_id(), new_id()
    desk.errors = [
        ConnectionError("unavailable"),
        VersionConflict(one, 3),
        OSError("as before"),
    ]

    await desk.consumer.take([record(one, 1), record(other, 1)])

    assert (await desk.effects(one), await desk.effects(other)) == ([1], [1])
    assert desk.letters == []
    assert desk.consumer.obstacle is None


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.ReadOnlySQLTransactionError,  # 25006: a standby, or a full disk
        asyncpg.InvalidPasswordError,  # 28P01
        asyncpg.InvalidCatalogNameError,  # 3D000: no such database
        asyncpg.InsufficientPrivilegeError,  # 42501
        asyncpg.UndefinedTableError,  # 42P01: not yet migrated
        asyncpg.PostgresIOError,  # 58030
        asyncpg.InternalServerError,  # XX000
    ],
)
async def test_what_the_database_refuses_for_its_own_sake_is_tried_again(
    desk: Desk, error: type[asyncpg.PostgresError]
) -> None:
    counter, desk.errors = new_id(), [error("for now")]

    await desk.consumer.take([record(counter, 1)])

    assert await desk.effects(counter) == [1]
    assert desk.letters == []


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.NumericValueOutOfRangeError,  # 22003
        asyncpg.CheckViolationError,  # 23514
        asyncpg.ProgramLimitExceededError,  # 54000
    ],
)
async def test_what_the_database_refuses_because_of_the_record_is_poison(
    desk: Desk, error: type[asyncpg.PostgresError]
) -> None:
    counter, desk.errors = new_id(), [error("for good")]

    await desk.consumer.take([record(counter, 1)])

    assert await desk.effects(counter) == []
    assert desk.letter_reasons() == [f"{error.__name__}: for good"]


async def test_a_read_only_database_costs_no_message(
    desk: Desk, connection: asyncpg.Connection
) -> None:
    counter, database = new_id(), await connection.fetchval("SELECT current_database()")

    async def set_read_only(value: str) -> None:
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(
            f'ALTER DATABASE "{database}" SET default_transaction_read_only = {value}'
        )
        await desk.pool.expire_connections()

    await set_read_only("on")
    taking = asyncio.create_task(desk.consumer.take(records(counter, 1, 2)))
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while desk.consumer.obstacle is None and not taking.done():
            await asyncio.sleep(0.01)
    assert "read-only transaction" in (desk.consumer.obstacle or "")

    await set_read_only("off")
    await asyncio.wait_for(taking, HANGS_AFTER_SECONDS)

    assert await desk.effects(counter) == [1, 2]
    assert desk.letters == []
    assert await desk.reasons() == {}


async def test_trap_t10_a_poisoned_stream_waits_and_all_others_continue(desk: Desk) -> None:
    sick, *healthy = [new_id() for _ in range(6)]
    desk.poison = {sick}
    batch = [record(counter, version) for version in (1, 2) for counter in (*healthy, sick)]

    await desk.consumer.take(batch)
    await desk.consumer.take(records(sick, 3))

    assert [await desk.effects(counter) for counter in healthy] == [[1, 2]] * 5
    assert await desk.effects(sick) == []
    assert await desk.waiting(sick) == [1, 2, 3]
    assert await desk.reasons() == {sick: "ValueError: cannot be"}
    assert desk.letter_reasons() == ["ValueError: cannot be"]
    assert desk.letters[0].value == batch[5].value


@pytest.mark.parametrize("checks_before", [0, 1], ids=["to be taken", "to be parked"])
async def test_in_a_restored_database_no_record_is_taken_or_parked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, checks_before: int
) -> None:
    """Nor is it tried again: the process has to end."""
    counter = new_id()
    desk.poison = {counter}
    answers = iter([True] * checks_before)

    async def check(guard: RestoredGuard, connection: Connection) -> None:
        if not next(answers, False):
            raise Restored

    monkeypatch.setattr(RestoredGuard, "check", check)
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        with pytest.raises(Restored):
            await desk.consumer.take([record(counter, 1)])

    assert desk.attempts == len(desk.letters) == checks_before
    assert await desk.reasons() == {}
    assert await desk.version(counter) is None


async def test_a_newer_schema_version_is_poison(desk: Desk) -> None:
    counter = new_id()

    await desk.consumer.take([record(counter, 1, schema_version=2), record(counter, 2)])

    assert await desk.effects(counter) == []
    assert await desk.waiting(counter) == [1, 2]
    assert desk.letter_reasons() == ["UnknownSchemaVersion: version 2 of counted"]


async def test_a_value_that_cannot_be_decoded_is_poison(desk: Desk) -> None:
    counter = new_id()

    await desk.consumer.take([record(counter, 1, value=b"\x00\xff garbage")])

    assert await desk.waiting(counter) == [1]
    [reason] = desk.letter_reasons()
    assert reason.startswith("ValidationError: ")


async def test_a_value_that_postgresql_cannot_hold_is_poison(desk: Desk) -> None:
    """The driver raises before the server has seen it, and another attempt would not help."""
    with pytest.raises(asyncpg.DataError) as unfit:
        await desk.pool.fetchval("SELECT $1::integer", 2**31)
    counter, desk.errors = new_id(), [unfit.value]

    await desk.consumer.take([record(counter, 1)])

    assert (await desk.reasons())[counter].startswith("DataError: ")
    assert await desk.effects(counter) == []


async def test_a_poisonous_message_that_comes_again_changes_nothing(desk: Desk) -> None:
    counter = new_id()
    desk.poison = {counter}
    await desk.consumer.take(records(counter, 1, 2))
    first = await parked.list_messages(desk.pool, NAME, StreamKey(TOPIC, counter), 100)

    await desk.consumer.take(records(counter, 1, 2))

    assert await parked.list_messages(desk.pool, NAME, StreamKey(TOPIC, counter), 100) == first
    assert len(desk.letters) == 1


async def test_a_gap_parks_its_stream_and_no_other(
    desk: Desk,
) -> None:
    holed, whole = new_id(), new_id()

    with written_log() as written:
        await desk.consumer.take([*records(holed, 1, 3, 4), *records(whole, 1, 2)])

    assert await desk.effects(holed) == [1]
    assert await desk.waiting(holed) == [3, 4]
    assert await desk.reasons() == {holed: "gap: version 2 is missing"}
    [line] = written.find("the stream is parked: gap: version 2 is missing")
    assert (line["stream_id"], line["stream_version"]) == (str(holed), 3)
    assert await desk.effects(whole) == [1, 2]


async def test_a_gap_is_seen_over_a_restart_also_after_messages_without_reaction(
    desk: Desk,
) -> None:
    counter = new_id()
    await desk.consumer.take([record(counter, 1), record(counter, 2, type_="user-moved")])

    await Desk(desk.pool).consumer.take(records(counter, 4))

    assert await desk.reasons() == {counter: "gap: version 3 is missing"}


async def test_a_stream_that_begins_in_its_middle_has_a_gap(desk: Desk) -> None:
    counter = new_id()

    await desk.consumer.take(records(counter, 2))

    assert await desk.reasons() == {counter: "gap: version 1 is missing"}


async def test_a_record_without_its_previous_version_has_no_gap(desk: Desk) -> None:
    counter = new_id()
    bare = [each for each in record(counter, 5).headers if each[0] != "ce_previousversion"]

    await desk.consumer.take([replace(record(counter, 5), headers=bare)])

    assert await desk.effects(counter) == [5]


async def test_of_two_that_take_the_same_batch_at_once_one_does(desk: Desk) -> None:
    """A worker that lost its partitions, and the one that has them now."""
    counters = [new_id() for _ in range(10)]
    batch = [record(counter, version) for version in (1, 2) for counter in counters]

    await asyncio.gather(*(Desk(desk.pool).consumer.take(batch) for _ in range(4)))

    assert [await desk.effects(counter) for counter in counters] == [[1, 2]] * 10


async def test_a_version_that_another_worker_wrote_meanwhile_is_not_overwritten(
    desk: Desk,
) -> None:
    counter = new_id()
    async with desk.pool.acquire() as connection:
        message = parse_message(record(counter, 1))
        late = await Inbox.open(connection, NAME, [message])
        await desk.consumer.take(records(counter, 1, 2))
        late.mark_consumed(message)

        with pytest.raises(ConsumedElsewhere):
            await late.write_versions()

    assert await desk.version(counter) == 2


async def test_trap_t11_nothing_continues_without_the_dead_letter_topic(desk: Desk) -> None:
    counter = new_id()
    garbage = replace(record(counter, 1), headers=[])
    desk.letter_errors = [ConnectionError("unavailable")] * 1_000_000
    taking = asyncio.create_task(desk.consumer.take([garbage, record(counter, 1)]))

    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while desk.consumer.obstacle is None:
            await asyncio.sleep(0.01)
    assert desk.consumer.obstacle == "writing dead letters: ConnectionError: unavailable"
    assert await desk.effects(counter) == []

    desk.letter_errors.clear()
    await asyncio.wait_for(taking, HANGS_AFTER_SECONDS)

    assert desk.letter_reasons() == ["malformed: no header 'ce_id'"]
    assert await desk.effects(counter) == [1]
    assert desk.consumer.obstacle is None


async def test_an_obstacle_of_one_batch_is_shown_until_that_batch_is_taken(desk: Desk) -> None:
    """Each topic has a batch of its own; the success of another one clears nothing."""
    stuck, smooth = new_id(), new_id()
    desk.letter_errors = [ConnectionError("unavailable")] * 1_000_000
    taking = asyncio.create_task(desk.consumer.take([replace(record(stuck, 1), headers=[])]))
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while desk.consumer.obstacle is None:
            await asyncio.sleep(0.01)

    await desk.consumer.take(records(smooth, 1))

    assert desk.consumer.obstacle is not None
    desk.letter_errors.clear()
    await asyncio.wait_for(taking, HANGS_AFTER_SECONDS)


async def test_what_is_refused_for_good_leaves_no_trace_of_its_first_attempt(desk: Desk) -> None:
    """The first attempt at a batch is rolled back as a whole, effects of others included."""
    sick, healthy = new_id(), new_id()
    desk.poison = {sick}

    await desk.consumer.take([record(healthy, 1), record(sick, 1), record(healthy, 2)])

    assert await desk.effects(healthy) == [1, 2]
    assert await desk.effects(sick) == []
    assert await desk.version(sick) is None


@pytest.mark.parametrize(
    ("failing", "error"),
    [("hold_shared", ConnectionError("unavailable")), ("park", RuntimeError("a bug"))],
)
async def test_a_failure_around_the_effects_is_tried_again_as_well(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, failing: str, error: Exception
) -> None:
    """An exception that left `take` would let the record be acknowledged."""
    counter, errors = new_id(), [error] * 2
    real = getattr(parked, failing)

    async def broken(*values: object) -> object:
        if errors:
            raise errors.pop()
        return await real(*values)

    monkeypatch.setattr(parked, failing, broken)
    desk.poison = {counter}

    await desk.consumer.take(records(counter, 1))

    assert await desk.waiting(counter) == [1]


def versions(letters: Sequence[OutgoingRecord]) -> list[str]:
    return [dict(wire.unpack(letter.headers))["ce_streamversion"].decode() for letter in letters]


async def test_every_poisoned_stream_of_a_batch_has_its_own_letter(desk: Desk) -> None:
    sick = [new_id() for _ in range(3)]
    desk.poison = set(sick)

    await desk.consumer.take([record(counter, 1) for counter in sick])

    assert set(await desk.reasons()) == set(sick)
    assert versions(desk.letters) == ["1", "1", "1"]


def test_a_reason_is_a_line_that_postgresql_and_kafka_take() -> None:
    reason = to_reason(ValueError("\x00\n \ud800" + "x" * 2 * REASON_CHARACTERS_MAX))

    assert reason.startswith("ValueError: \\x00 \\ud800xx")
    assert len(reason.encode()) == REASON_CHARACTERS_MAX


async def test_read_models_follow_after_the_domain_has_decided() -> None:
    async def decide(connection: Connection, deliveries: Sequence[Delivery]) -> None:
        """Has no effect."""

    async def project(connection: Connection, messages: Sequence[Message]) -> None:
        """Another one."""

    model = ReadModel(name="t", topic="users.v1", types=("counted", "moved"), project=project)

    reactions = merge_reactions([{"users.v1": {"counted": [decide]}}], [model])["users.v1"]

    [first, second] = reactions["counted"]
    assert (first, [second]) == (decide, reactions["moved"])
