"""Migrations keep what a database has."""

from collections.abc import Iterator

import asyncpg
import pytest

from local_stack.testing import Databases
from shared.runtime.postgres import list_migrations

ADDED = "shared/0007_streams_by_topic.sql"

FILL = """
    INSERT INTO consumed_versions (consumer, stream_id, version)
    SELECT 'worker', gen_random_uuid(), n FROM generate_series(1, 3) AS n;
    INSERT INTO parked_streams (consumer, stream_id, topic, reason, parked_at)
    VALUES ('worker', '00000000-0000-0000-0000-000000000001', 'users.v1', 'gap', now());
    INSERT INTO parked_messages (consumer, stream_id, version, event_id, topic, partition,
                                 record_offset, key, value, headers, parked_at)
    SELECT 'worker', '00000000-0000-0000-0000-000000000001', version, gen_random_uuid(), topic, 0,
           1, '', '', '[]', now()
    FROM (VALUES (2, 'users.v1'), (3, 'orders.v1')) AS waiting (version, topic)
"""


@pytest.fixture
def empty(databases: Databases) -> Iterator[str]:
    with databases.create() as dsn:
        yield dsn


async def test_streams_that_wait_still_wait_once_they_are_known_by_topic(empty: str) -> None:
    """Also those that waited with a stream of the same id."""
    connection = await asyncpg.connect(empty)
    for migration in list_migrations("shared"):
        if migration.name == ADDED:
            await connection.execute(FILL)
        await connection.execute(migration.sql)

    streams = await connection.fetch("SELECT topic FROM parked_streams ORDER BY topic")
    waiting = await connection.fetch("SELECT topic, version FROM parked_messages ORDER BY version")
    topics = await connection.fetch("SELECT DISTINCT topic FROM consumed_versions")
    await connection.close()

    assert [row["topic"] for row in streams] == ["orders.v1", "users.v1"]
    assert [tuple(row) for row in waiting] == [("users.v1", 2), ("orders.v1", 3)]
    assert [row["topic"] for row in topics] == [""]
