"""Answers are kept for as long as a request may be repeated, and then forgotten bit by bit."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from shared.outbox import relay
from shared.web import idempotency
from shared.web.idempotency import KEPT

NOW = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TIDIED_SECONDS_MAX = 2
"""Its first round takes some milliseconds, the next one comes much later."""

KEEP = """
    INSERT INTO idempotency_keys (scope, key, fingerprint, status, headers, body, recorded_at)
    SELECT 'scope', $1 || number, '', 201, '{}', '', $2
    FROM generate_series(1, $3::integer) AS number
"""


async def kept(connection: asyncpg.Connection) -> set[str]:
    rows = await connection.fetch("SELECT key FROM idempotency_keys")
    return {row["key"] for row in rows}


async def test_an_answer_is_forgotten_when_its_time_is_over(
    connection: asyncpg.Connection,
) -> None:
    await connection.execute(KEEP, "old", NOW - KEPT - MINUTE, 1)
    await connection.execute(KEEP, "young", NOW - KEPT + MINUTE, 1)

    await idempotency.forget(connection, NOW)

    assert await kept(connection) == {"young1"}


async def test_a_round_has_a_bound(
    connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "FORGOTTEN_MAX", 3)
    await connection.execute(KEEP, "old", NOW - KEPT - MINUTE, 5)

    await idempotency.forget(connection, NOW)

    assert len(await kept(connection)) == 2


async def test_the_relay_forgets_beside_its_work(connection: asyncpg.Connection) -> None:
    await connection.execute(KEEP, "old", datetime.now(UTC) - KEPT - MINUTE, 1)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(TIDIED_SECONDS_MAX):
            await relay.tidy(connection)

    assert await kept(connection) == set()
