"""The processes of users-svc, as `__main__` composes them."""

import asyncio
from collections.abc import Coroutine
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

import shared.inbox.worker
from shared.inbox.consumer import Consumer
from shared.runtime import telemetry
from shared.runtime.settings import Settings
from shared.service import command_line
from shared.web.idempotency import KEPT
from users_svc import __main__, worker
from users_svc.bootstrap import Resources
from users_svc.settings import UsersSettings

FORGOTTEN_SECONDS_MAX = 10

KEEP = """
    INSERT INTO idempotency_keys (scope, key, fingerprint, status, headers, body, recorded_at)
    VALUES ('scope', 'old', '', 201, '{}', '', $1)
"""
COUNT = "SELECT count(*) FROM idempotency_keys"


async def test_the_worker_deletes_old_responses_in_the_background(
    database: str, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all of its tasks but the consumer itself."""
    await resources.pool.execute(KEEP, datetime.now(UTC) - 2 * KEPT)

    async def run_background(
        consumer: Consumer, settings: Settings, *background: Coroutine[object, object, None]
    ) -> None:
        tasks = [asyncio.create_task(work) for work in background]
        async with asyncio.timeout(FORGOTTEN_SECONDS_MAX):
            while await resources.pool.fetchval(COUNT):
                await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()

    monkeypatch.setattr(shared.inbox.worker, "run_worker", run_background)
    monkeypatch.setattr(telemetry, "configured", lambda name, endpoint: nullcontext())

    await command_line.run_worker(__main__.SERVICE, UsersSettings(database_url=database))

    assert await resources.pool.fetchval(COUNT) == 0


def test_the_worker_of_the_frame_is_the_consumer() -> None:
    """Its name is also its consumer group, and that of its dead letter topics."""
    assert __main__.SERVICE.worker_name == worker.NAME
