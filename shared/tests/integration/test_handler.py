"""From a command to recorded events, also where a stream was thought to be new."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg
import pytest

from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import UnexpectedVersion, VersionConflict
from shared.eventsourcing.event_store import CONFLICTS, GIVEN_UP, RETRIED
from shared.eventsourcing.handler import ATTEMPTS_MAX, Outcome, attempt, handle, handle_request
from shared.messaging.messages import IdempotencyKey, StoredResponse
from shared.runtime.identifiers import new_id
from test_support.counted import counting
from test_support.counter.counter import Counted, counted, some_metadata, store_of


def decide(command: UUID, number: int) -> Sequence[Counted]:
    return counted(command, number + 1)


def evolve(number: int, event: Counted) -> int:
    return event.number


COUNTER: Decider[UUID, int, Counted] = Decider(initial=0, decide=decide, evolve=evolve)


async def test_a_new_stream_begins_without_being_looked_for(pool: asyncpg.Pool) -> None:
    store, counter = store_of(pool), new_id()

    outcome = await handle(store, COUNTER, counter, counter, metadata=some_metadata(), is_new=True)

    assert (outcome.state, outcome.version) == (1, 1)
    assert [each.event.number for each in await store.read(counter)] == [1]


async def test_a_stream_wrongly_called_new_is_decided_on_as_it_is(pool: asyncpg.Pool) -> None:
    store, counter = store_of(pool), new_id()
    await store.append(counter, 0, counted(counter, 7), metadata=some_metadata())

    outcome = await handle(store, COUNTER, counter, counter, metadata=some_metadata(), is_new=True)

    assert (outcome.state, outcome.version) == (8, 2)
    assert [each.event.number for each in await store.read(counter)] == [7, 8]


async def test_a_lost_race_counts_by_how_it_ended(pool: asyncpg.Pool) -> None:
    store, counter = store_of(pool), new_id()

    async def lose(before: Outcome[int]) -> None:
        raise VersionConflict(counter, before.version)

    with counting(CONFLICTS) as counted, pytest.raises(VersionConflict):
        await attempt(store, COUNTER, counter, lose, is_new=False)

    assert counted == {
        (store.category, RETRIED): ATTEMPTS_MAX - 1,
        (store.category, GIVEN_UP): 1,
    }


async def test_a_stream_wrongly_called_new_at_version_0_is_a_conflict(pool: asyncpg.Pool) -> None:
    store, counter = store_of(pool), new_id()
    await store.append(counter, 0, counted(counter, 7), metadata=some_metadata())

    with pytest.raises(UnexpectedVersion):
        await handle(
            store,
            COUNTER,
            counter,
            counter,
            metadata=some_metadata(),
            is_expected=lambda version: version == 0,
            is_new=True,
        )

    assert [each.event.number for each in await store.read(counter)] == [7]


async def test_the_response_to_a_request_is_made_once_and_stored_as_it_is_returned(
    pool: asyncpg.Pool,
) -> None:
    store, counter = store_of(pool), new_id()
    made: list[StoredResponse] = []

    def make_response(outcome: Outcome[int]) -> StoredResponse:
        made.append(StoredResponse(status=201, headers={}, body=b"%d" % outcome.state))
        return made[-1]

    for key in (None, IdempotencyKey(scope="test", key="k", fingerprint=b"f")):
        response = await handle_request(
            store, COUNTER, counter, counter, make_response, metadata=some_metadata(), key=key
        )
        assert response is made[-1]

    assert [response.body for response in made] == [b"1", b"2"]
    stored = await pool.fetch("SELECT body FROM idempotency_keys")
    assert [row["body"] for row in stored] == [b"2"]
