"""One append is all or nothing: version check, events, outbox, idempotency key, message."""

import asyncio
import json
from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest

from shared.eventsourcing.errors import Refused, StaleRead, VersionConflict
from shared.eventsourcing.event_store import EventStore, KeyUsed, get_partition
from shared.messaging import wire
from shared.messaging.messages import IdempotencyKey, StoredResponse
from shared.runtime.identifiers import new_id
from test_support.counter.counter import Counted, counted, publish, some_metadata, store_of

USED = IdempotencyKey(scope="POST /counters", key="used", fingerprint=b"f")
UNUSED = IdempotencyKey(scope="POST /counters", key="unused", fingerprint=b"f")
ANSWER = StoredResponse(status=200, headers={}, body=b"{}")

APPEND_BEFORE = "SELECT append($1, 'counter', $2, '{}', '{}', now(), NULL)"


async def count(pool: asyncpg.Pool, table: str) -> int:
    found: int = await pool.fetchval(f"SELECT count(*) FROM {table}")
    return found


async def test_what_was_appended_is_read_back_in_order(store: EventStore[Counted]) -> None:
    counter = new_id()

    await store.append(counter, 0, counted(counter, 1, 2), metadata=some_metadata())
    version = await store.append(counter, 2, counted(counter, 3), metadata=some_metadata())

    recorded = await store.read(counter)
    assert version == 3
    assert [each.version for each in recorded] == [1, 2, 3]
    assert [each.event.number for each in recorded] == [1, 2, 3]


async def test_an_unknown_stream_has_no_events(store: EventStore[Counted]) -> None:
    assert await store.read(new_id()) == []


@pytest.mark.parametrize("stale_version", [0, 1, 3])
async def test_a_stale_version_is_a_conflict_that_names_the_current_one(
    store: EventStore[Counted], pool: asyncpg.Pool, stale_version: int
) -> None:
    counter = new_id()
    await store.append(counter, 0, counted(counter, 1, 2), metadata=some_metadata())

    with pytest.raises(VersionConflict) as conflict:
        await store.append(counter, stale_version, counted(counter, 9), metadata=some_metadata())

    assert conflict.value.current_version == 2
    assert await count(pool, "events") == await count(pool, "outbox") == 2


async def test_a_decision_on_other_streams_holds_while_they_are_as_they_were_read(
    store: EventStore[Counted],
) -> None:
    counter, other = new_id(), new_id()
    await store.append(other, 0, counted(other, 1, 2), metadata=some_metadata())

    version = await store.append(
        counter, 0, counted(counter, 1), metadata=some_metadata(), read_versions={other: 2}
    )

    assert version == 1


@pytest.mark.parametrize("read_version", [0, 1, 3])
async def test_once_one_of_them_has_another_version_nothing_is_recorded(
    store: EventStore[Counted], pool: asyncpg.Pool, read_version: int
) -> None:
    counter, other, same = new_id(), new_id(), new_id()
    await store.append(other, 0, counted(other, 1, 2), metadata=some_metadata())
    await store.append(same, 0, counted(same, 1), metadata=some_metadata())
    read_versions = {same: 1, other: read_version}

    with pytest.raises(StaleRead):
        await store.append(
            counter, 0, counted(counter, 9), metadata=some_metadata(), read_versions=read_versions
        )

    assert await store.read(counter) == []
    assert await count(pool, "outbox") == 3


async def test_of_writers_at_one_version_exactly_one_wins(store: EventStore[Counted]) -> None:
    counter = new_id()
    writers = [
        store.append(counter, 0, counted(counter, number), metadata=some_metadata())
        for number in range(8)
    ]

    answers = await asyncio.gather(*writers, return_exceptions=True)

    assert sorted(map(str, (type(answer).__name__ for answer in answers))) == sorted(
        ["int"] + ["VersionConflict"] * 7
    )
    assert len(await store.read(counter)) == 1


async def test_the_outbox_row_is_ready_for_the_wire(
    store: EventStore[Counted], pool: asyncpg.Pool
) -> None:
    counter, metadata = new_id(), some_metadata()

    await store.append(counter, 0, counted(counter, 7), metadata=metadata)

    [row] = await pool.fetch("SELECT topic, partition, key, value, headers FROM outbox")
    headers = dict(wire.unpack(row["headers"]))
    [recorded] = await store.read(counter)
    assert row["topic"] == "users.v1"
    assert row["key"] == str(counter).encode()
    assert row["partition"] == get_partition("users.v1", str(counter))
    assert json.loads(row["value"]) == {"counter_id": str(counter), "number": 7}
    assert headers["ce_id"] == str(recorded.event_id).encode()
    assert headers["ce_type"] == b"counted"
    assert headers["ce_streamversion"] == b"1"
    assert headers["ce_correlationid"] == str(metadata.correlation_id).encode()
    assert headers["ce_causationid"] == str(metadata.causation_id).encode()


@pytest.mark.parametrize(("actor", "recorded"), [("a-clerk", "a-clerk"), (None, "test")])
async def test_every_event_has_an_actor(
    store: EventStore[Counted], pool: asyncpg.Pool, actor: str | None, recorded: str
) -> None:
    """The caller of the request, or the service that reacted by itself."""
    counter = new_id()

    await store.append(
        counter, 0, counted(counter, 1), metadata=replace(some_metadata(), actor=actor)
    )

    stored = await pool.fetchval("SELECT metadata FROM events WHERE stream_id = $1", counter)
    assert json.loads(stored)["actor"] == recorded


async def test_a_used_idempotency_key_records_nothing_more(
    store: EventStore[Counted], pool: asyncpg.Pool
) -> None:
    key = IdempotencyKey(scope="POST /counters", key="k", fingerprint=b"f")
    answer = StoredResponse(status=201, headers={"ETag": '"1"'}, body=b"{}")
    first, second = new_id(), new_id()
    await store.append(
        first, 0, counted(first, 1), metadata=some_metadata(), key=key, answer=answer
    )

    with pytest.raises(KeyUsed):
        await store.append(
            second, 0, counted(second, 1), metadata=some_metadata(), key=key, answer=answer
        )

    assert await store.read(second) == []
    assert await count(pool, "streams") == await count(pool, "outbox") == 1


async def test_a_conflict_leaves_the_idempotency_key_free(
    store: EventStore[Counted], pool: asyncpg.Pool
) -> None:
    key = IdempotencyKey(scope="POST /counters", key="k", fingerprint=b"f")
    answer = StoredResponse(status=200, headers={}, body=b"{}")
    counter = new_id()
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())

    with pytest.raises(VersionConflict):
        await store.append(
            counter, 0, counted(counter, 2), metadata=some_metadata(), key=key, answer=answer
        )

    assert await count(pool, "idempotency_keys") == 0


@pytest.mark.parametrize(
    ("expected_version", "key", "read_versions", "error"),
    [
        (0, USED, {}, KeyUsed),
        (0, UNUSED, {}, VersionConflict),
        (2, UNUSED, {}, VersionConflict),
        (1, UNUSED, {UUID(int=1): 7}, StaleRead),
    ],
)
async def test_a_refusal_is_no_error_of_the_server(
    pool: asyncpg.Pool,
    store: EventStore[Counted],
    expected_version: int,
    key: IdempotencyKey,
    read_versions: dict[UUID, int],
    error: type[Exception],
) -> None:
    """An error would be a line in its log, and would end the transaction."""
    counter, metadata = new_id(), some_metadata()
    await store.append(counter, 0, counted(counter, 1), metadata=metadata, key=USED, answer=ANSWER)

    async with pool.acquire() as connection, connection.transaction():
        bound = store.within(connection)
        with pytest.raises(error):
            await bound.append(
                counter,
                expected_version,
                counted(counter, 9),
                metadata=metadata,
                key=key,
                answer=ANSWER,
                read_versions=read_versions,
            )
        await bound.append(counter, 1, counted(counter, 2), metadata=metadata)

    assert [each.event.number for each in await store.read(counter)] == [1, 2]
    stored = await pool.fetch("SELECT key FROM idempotency_keys")
    assert [row["key"] for row in stored] == [USED.key]


async def test_a_process_of_the_release_before_appends_and_is_refused_with_errors(
    pool: asyncpg.Pool, store: EventStore[Counted]
) -> None:
    """It calls the function `append`, while and after the tables are migrated."""
    counter = new_id()
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())

    assert await pool.fetchval(APPEND_BEFORE, counter, 1) == 1
    with pytest.raises(asyncpg.PostgresError) as refused:
        await pool.fetchval(APPEND_BEFORE, counter, 7)

    assert (refused.value.sqlstate, refused.value.as_dict()["detail"]) == ("HT002", "1")


async def test_to_do_nothing_is_decided_on_the_version_that_was_read(
    store: EventStore[Counted],
) -> None:
    counter = new_id()
    await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())

    assert await store.append(counter, 1, [], metadata=some_metadata()) == 1
    assert await store.append(new_id(), 0, [], metadata=some_metadata()) == 0
    for stale_version in (0, 2):
        with pytest.raises(VersionConflict) as conflict:
            await store.append(counter, stale_version, [], metadata=some_metadata())
        assert conflict.value.current_version == 1


async def test_an_event_too_large_for_the_broker_is_not_recorded(
    store: EventStore[Counted], pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.eventsourcing.event_store.MESSAGE_BYTES_MAX", 10)
    counter = new_id()

    with pytest.raises(Refused, match="event-too-large"):
        await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())

    assert await count(pool, "events") == 0


async def test_each_outbox_row_names_the_version_that_left_before_it(
    pool: asyncpg.Pool, store: EventStore[Counted]
) -> None:
    """A consumer can distinguish a missing version from one that never left the service."""
    quiet = store_of(pool, publish=lambda event: publish(event) if event.number != 3 else None)
    counter = new_id()
    await quiet.append(counter, 0, counted(counter, 1, 2), metadata=some_metadata())
    await quiet.append(counter, 2, counted(counter, 3), metadata=some_metadata())
    await quiet.append(counter, 3, counted(counter, 4, 5), metadata=some_metadata())

    rows = await pool.fetch("SELECT headers FROM outbox ORDER BY position")

    links = [dict(wire.unpack(row["headers"])) for row in rows]
    assert [(each["ce_previousversion"], each["ce_streamversion"]) for each in links] == [
        (b"0", b"1"),
        (b"1", b"2"),
        (b"2", b"4"),
        (b"4", b"5"),
    ]


async def test_a_store_within_a_transaction_shares_its_fate(
    pool: asyncpg.Pool, store: EventStore[Counted]
) -> None:
    counter = new_id()
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        bound = store.within(connection)
        await bound.append(counter, 0, counted(counter, 1), metadata=some_metadata())
        assert len(await bound.read(counter)) == 1
        assert await store.read(counter) == []
        await transaction.rollback()

    assert await store.read(counter) == []
