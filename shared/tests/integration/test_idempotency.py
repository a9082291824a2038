"""Responses are stored while a request can be repeated, and then deleted in rounds."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from shared.runtime.postgres import Connection
from shared.web import idempotency
from shared.web.idempotency import KEPT
from test_support.waits import HANGS_AFTER_SECONDS

NOW = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

KEEP = """
    INSERT INTO idempotency_keys (scope, key, fingerprint, status, headers, body, recorded_at)
    SELECT 'scope', $1 || number, '', 201, '{}', '', $2
    FROM generate_series(1, $3::integer) AS number
"""


async def kept(database: asyncpg.Connection | asyncpg.Pool) -> set[str]:
    rows = await database.fetch("SELECT key FROM idempotency_keys")
    return {row["key"] for row in rows}


async def test_a_stored_response_is_deleted_after_its_time(
    connection: asyncpg.Connection,
) -> None:
    await connection.execute(KEEP, "old", NOW - KEPT - MINUTE, 1)
    await connection.execute(KEEP, "young", NOW - KEPT + MINUTE, 1)

    await idempotency.forget(connection, NOW)

    assert await kept(connection) == {"young1"}


async def test_a_round_deletes_a_limited_number(
    connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "FORGOTTEN_MAX", 3)
    await connection.execute(KEEP, "old", NOW - KEPT - MINUTE, 5)

    await idempotency.forget(connection, NOW)

    assert len(await kept(connection)) == 2


async def test_a_backlog_of_many_rounds_is_deleted_in_one_period(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One round for each period would be less than a service can store meanwhile."""
    monkeypatch.setattr(idempotency, "FORGOTTEN_MAX", 3)
    monkeypatch.setattr(idempotency, "FORGET_PERIOD_SECONDS", 2 * HANGS_AFTER_SECONDS)
    await pool.execute(KEEP, "old", datetime.now(UTC) - KEPT - MINUTE, 10)
    housekeeping = asyncio.create_task(idempotency.forget_periodically(pool))

    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while await kept(pool):
            await asyncio.sleep(0.01)

    housekeeping.cancel()


async def test_the_housekeeping_task_deletes_in_every_round(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "FORGET_PERIOD_SECONDS", 0.01)
    housekeeping = asyncio.create_task(idempotency.forget_periodically(pool))

    for _ in range(2):
        await pool.execute(KEEP, "old", datetime.now(UTC) - KEPT - MINUTE, 1)
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while await kept(pool):
                await asyncio.sleep(0.01)

    housekeeping.cancel()


async def test_housekeeping_outlives_an_unavailable_database(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would end the worker, which runs it in the background."""
    errors: list[Exception] = [ConnectionError("no route"), asyncpg.CannotConnectNowError()]
    forget = idempotency.forget

    async def unavailable_at_first(connection: Connection, now: datetime) -> bool:
        if errors:
            raise errors.pop()
        return await forget(connection, now)

    monkeypatch.setattr(idempotency, "FORGET_PERIOD_SECONDS", 0.01)
    monkeypatch.setattr(idempotency, "forget", unavailable_at_first)
    await pool.execute(KEEP, "old", datetime.now(UTC) - KEPT - MINUTE, 1)
    housekeeping = asyncio.create_task(idempotency.forget_periodically(pool))

    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while await kept(pool):
            await asyncio.sleep(0.01)

    housekeeping.cancel()
