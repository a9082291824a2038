"""A store of counters in a database of its own."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from counter import CODEC, Counted, publish
from shared import postgres
from shared.doorbell import Doorbell
from shared.event_store import EventStore


@pytest.fixture
async def pool(database: str) -> AsyncIterator[asyncpg.Pool]:
    await postgres.migrate(database, "shared")
    async with postgres.open_pool(database, name="test", connections_max=10) as pool:
        yield pool


@pytest.fixture
async def connection(database: str) -> AsyncIterator[asyncpg.Connection]:
    await postgres.migrate(database, "shared")
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


@pytest.fixture
def store(pool: asyncpg.Pool) -> EventStore[Counted]:
    return EventStore(
        pool,
        category="counter",
        source="test",
        codec=CODEC,
        publish=publish,
        doorbell=Doorbell(None),
    )
