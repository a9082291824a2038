"""What a caller gets while the database is read-only, and when its connection is lost."""

import asyncio
from typing import Any

import asyncpg
import httpx
import pytest

from shared.runtime import postgres
from test_support.waits import HANGS_AFTER_SECONDS
from users_svc.bootstrap import Resources

JACK: dict[str, Any] = {
    "name": "Jack",
    "address": "BJ",
    "gender": "male",
    "credit_limit": "100.00",
}

MAKE_READ_ONLY = """
    DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',
                       current_database());
    END $$
"""

HOLD = "SELECT FROM streams FOR UPDATE"

END_WAITING = """
    SELECT pg_terminate_backend(pid)
    FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture(autouse=True)
def wait_long_for_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is stopped while a request waits, not after it."""
    monkeypatch.setattr(postgres, "LOCK_TIMEOUT_SECONDS", HANGS_AFTER_SECONDS)


@pytest.fixture
async def jack(client: httpx.AsyncClient) -> str:
    """The address of a registered user."""
    location: str = (await client.post("/v1/users", json=JACK)).headers["Location"]
    return location


async def test_a_read_only_database_is_read_and_not_written(
    client: httpx.AsyncClient, resources: Resources, jack: str
) -> None:
    await resources.pool.execute(MAKE_READ_ONLY)
    await resources.pool.expire_connections()

    read = await client.get(jack)
    written = await client.post(f"{jack}/moves", json={"address": "SH"})

    assert read.status_code == 200
    assert (written.status_code, written.json()["code"]) == (503, "unavailable")
    assert int(written.headers["Retry-After"]) > 0


async def test_a_connection_that_is_lost_in_the_middle_of_a_request_is_a_503(
    client: httpx.AsyncClient, resources: Resources, database: str, jack: str
) -> None:
    key = {"Idempotency-Key": "move"}
    other = await asyncpg.connect(database)
    async with other.transaction():
        await other.execute(HOLD)
        moving = asyncio.create_task(
            client.post(f"{jack}/moves", json={"address": "SH"}, headers=key)
        )
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while not await other.fetch(END_WAITING):
                await asyncio.sleep(0.01)
        moved = await moving
    await other.close()

    again = await client.post(f"{jack}/moves", json={"address": "SH"}, headers=key)

    assert (moved.status_code, moved.json()["code"]) == (503, "unavailable")
    assert (again.status_code, again.json()["address"]) == (200, "SH")
