"""Migrations: each once, whoever runs them, however often."""

import asyncio

from shared import postgres


async def test_migrations_are_applied_once(database: str) -> None:
    assert await postgres.migrate(database, "shared") == [
        "shared/0001_event_store.sql",
        "shared/0002_relay.sql",
    ]
    assert await postgres.migrate(database, "shared") == []


async def test_two_migrators_at_once_do_no_harm(database: str) -> None:
    applied = await asyncio.gather(*(postgres.migrate(database, "shared") for _ in range(3)))

    assert sorted(map(len, applied)) == [0, 0, 2]
