"""A store of counters in a database of its own, and a consumer of their messages."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from local_stack.testing import Databases
from shared.eventsourcing.event_store import EventStore
from shared.inbox import consumer as consumer_room
from shared.runtime import postgres
from test_support.counter.counted_records import CREATE_EFFECTS
from test_support.counter.counter import Counted, store_of
from test_support.counter.desk import Desk
from test_support.counter.relays import StartRelay, StartRelayAt, relays


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    """The DSN of a database of this test alone, with the tables of an event store."""
    with databases.create("shared") as dsn:
        yield dsn


@pytest.fixture
async def pool(database: str) -> AsyncIterator[asyncpg.Pool]:
    async with postgres.open_pool(database, name="test", connections_max=10) as pool:
        yield pool


@pytest.fixture
async def connection(database: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


@pytest.fixture
def store(pool: asyncpg.Pool) -> EventStore[Counted]:
    return store_of(pool)


@pytest.fixture
async def desk(pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A consumer that does not pause for long between two attempts."""
    monkeypatch.setattr(consumer_room, "BACKOFF_SECONDS_FIRST", 0.001)
    await pool.execute(CREATE_EFFECTS)
    return Desk(pool)


@pytest.fixture
def complaints(tmp_path: Path) -> Path:
    """What the relays of a test complain about."""
    return tmp_path / "complaints.log"


@pytest.fixture
def start_relay_at(database: str, complaints: Path) -> Iterator[StartRelayAt]:
    with relays(database, complaints) as start:
        yield start


@pytest.fixture
def start_relay(start_relay_at: StartRelayAt, kafka_servers: str) -> StartRelay:
    return lambda *points: start_relay_at(kafka_servers, *points)
