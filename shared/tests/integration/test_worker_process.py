"""What the worker of every service does besides its consumer."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime

import asyncpg
import pytest

import shared.inbox.worker
from shared.inbox.consumer import Consumer
from shared.runtime import telemetry
from shared.runtime.relay_notifier import RelayNotifier
from shared.runtime.settings import Settings
from shared.service import command_line
from shared.service.command_line import Service
from shared.web.idempotency import KEPT
from test_support.waits import HANGS_AFTER_SECONDS

KEEP = """
    INSERT INTO idempotency_keys (scope, key, fingerprint, status, headers, body, recorded_at)
    VALUES ('scope', 'old', '', 201, '{}', '', $1)
"""
COUNT = "SELECT count(*) FROM idempotency_keys"


@dataclass
class Resources:
    pool: asyncpg.Pool


async def test_a_worker_deletes_old_responses_in_the_background(
    database: str, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all of its tasks but the consumer itself."""
    await pool.execute(KEEP, datetime.now(UTC) - 2 * KEPT)

    async def run_background(
        consumer: Consumer, settings: Settings, *background: Coroutine[object, object, None]
    ) -> None:
        tasks = [asyncio.create_task(work) for work in background]
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while await pool.fetchval(COUNT):
                await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()

    monkeypatch.setattr(shared.inbox.worker, "run_worker", run_background)
    monkeypatch.setattr(telemetry, "configured", lambda name, endpoint: nullcontext())

    await command_line.run_worker(create_service(pool), Settings(database_url=database))

    assert await pool.fetchval(COUNT) == 0


def create_service(pool: asyncpg.Pool) -> Service[Settings, Resources]:
    @asynccontextmanager
    async def open_resources(_settings: Settings, _name: str) -> AsyncIterator[Resources]:
        yield Resources(pool)

    async def run_api() -> None:
        pytest.fail("the api ran")

    return Service(
        name="counters",
        package="counters_svc",
        settings=Settings,
        open_resources=open_resources,
        stores=lambda _resources: [],
        read_models=[],
        create_consumer=lambda resources, write: Consumer(
            "counters", resources.pool, {}, write, RelayNotifier(None)
        ),
        run_api=run_api,
    )
