"""A worker acknowledges what took effect, and nothing else."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest

from counter import TOPIC, Counted, counted, some_metadata
from shared import kafka, outbox
from shared.event_store import EventStore
from shared.identifiers import new_id
from shared.kafka import OutgoingRecord
from shared.outbox import Snapshot

DEADLINE_SECONDS = 60
STOP_SECONDS = 20

StartWorker = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def start_worker(database: str, kafka_servers: str, tmp_path: Path) -> Iterator[StartWorker]:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> "subprocess.Popen[bytes]":
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = str(sock.getsockname()[1])
        environment = os.environ | {
            "DATABASE_URL": database,
            "KAFKA_BOOTSTRAP_SERVERS": kafka_servers,
            "HTTP_PORT": port,
        }
        script = Path(__file__).with_name("worker_main.py")
        process = subprocess.Popen([sys.executable, script, tmp_path], env=environment)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


async def publish(
    store: EventStore[Counted], pool: asyncpg.Pool, kafka_servers: str, *numbers: int
) -> str:
    """What a relay would send of a new counter; its key."""
    counter = new_id()
    await store.append(counter, 0, counted(counter, *numbers), metadata=some_metadata())
    write = kafka.single_writer(kafka_servers, "test")
    async with pool.acquire() as connection:
        _, rows = await outbox.poll(connection, Snapshot(), 100)  # type: ignore[arg-type]
    for row in rows or ():
        if row.key == str(counter).encode():
            headers = [(name, value.encode()) for name, value in row.headers.items()]
            await write(
                OutgoingRecord(
                    topic=TOPIC,
                    partition=row.partition,
                    key=row.key,
                    value=row.value,
                    headers=headers,
                    timestamp=datetime.now(UTC),
                )
            )
    return str(counter)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():
            await asyncio.sleep(0.05)


def effects(folder: Path) -> list[str]:
    file = folder / "effects"
    return file.read_text().split() if file.exists() else []


async def stop(worker: "subprocess.Popen[bytes]") -> None:
    worker.terminate()
    assert await asyncio.to_thread(worker.wait, STOP_SECONDS) == 0


async def test_a_record_in_hand_at_a_stop_takes_effect_after_the_restart(
    store: EventStore[Counted],
    pool: asyncpg.Pool,
    kafka_servers: str,
    start_worker: StartWorker,
    tmp_path: Path,
) -> None:
    worker = start_worker()
    first = await publish(store, pool, kafka_servers, 1)
    await until(lambda: first in effects(tmp_path))
    (tmp_path / "hold").touch()
    second = await publish(store, pool, kafka_servers, 1)
    await until((tmp_path / "held").exists)

    await stop(worker)
    (tmp_path / "hold").unlink()
    start_worker()

    await until(lambda: second in effects(tmp_path))


async def test_a_record_that_took_effect_is_not_read_again_after_a_good_end(
    store: EventStore[Counted],
    pool: asyncpg.Pool,
    kafka_servers: str,
    start_worker: StartWorker,
    tmp_path: Path,
) -> None:
    first = await publish(store, pool, kafka_servers, 1, 2)
    worker = start_worker()
    await until(lambda: effects(tmp_path).count(first) == 2)
    await stop(worker)

    second = await publish(store, pool, kafka_servers, 1)
    start_worker()
    await until(lambda: second in effects(tmp_path))

    assert effects(tmp_path).count(first) == 2
