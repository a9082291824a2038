"""PostgreSQL restored to an older moment than Kafka: nothing continues as if it were the newest.

The negative control shows what happens where the relay has noted no timeline.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
from aiokafka import AIOKafkaProducer

from local_stack import ports
from local_stack.postgres import SUPERUSER, dsn, home
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.testing import TEST_POSTGRES, throwaway_stack
from shared.eventsourcing.history import History
from shared.inbox import parked
from shared.messaging.records import IncomingRecord
from shared.outbox import lease, replay
from shared.runtime import postgres
from shared.runtime.identifiers import new_id
from shared.runtime.progress import ProgressLine
from test_support.counter.counted_records import CREATE_EFFECTS, effects_of, record
from test_support.counter.counter import TOPIC, counted, some_metadata, store_of
from test_support.counter.desk import NAME
from test_support.counter.relays import relays
from test_support.counter.workers import worker
from test_support.power_cut import start, stop
from test_support.waits import HANGS_AFTER_SECONDS

RELAY, WORKER = (Path(__file__).with_name(name) for name in ("relay_main.py", "worker_main.py"))

REFUSAL = "PostgreSQL was restored to an older moment than Kafka: run `make republish`"
RECOVER = "restore_command = 'false'\n"
"""There is no archive: the log ends where the backup does."""

IS_ACTIVE = "SELECT owner IS NOT NULL FROM relay"
FORGET = "UPDATE relay SET timeline = NULL"
"""What the relay has noted is what lets both notice the restore."""


@pytest.fixture
def server() -> Iterator[StackContext]:
    """A server with a database that has published an event."""
    with throwaway_stack(StackSpec(processes=(TEST_POSTGRES,))) as context:
        asyncio.run(publish_one(get_database(context)))
        yield context


def get_database(server: StackContext) -> str:
    return dsn(server, SUPERUSER, "users")


async def publish_one(database: str) -> None:
    """As a relay would."""
    await postgres.migrate(database, "shared")
    async with postgres.open_pool(database, name="test", connections_max=2) as pool:
        counter = new_id()
        store = store_of(pool)
        await store.append(counter, 0, counted(counter, 1), metadata=some_metadata())
        async with pool.acquire() as connection:
            taken = await lease.acquire(connection, new_id())  # type: ignore[arg-type]
            assert taken is not None
            await taken[0].release(connection)  # type: ignore[arg-type]


def back_up(server: StackContext) -> None:
    stop(server, TEST_POSTGRES)
    copy(home(server) / "data", home(server) / "backup")
    start(server, TEST_POSTGRES)


def restore(server: StackContext) -> None:
    """What recovery to an older moment does: the server continues on a timeline of its own."""
    data = home(server) / "data"
    stop(server, TEST_POSTGRES)
    data.rename(home(server) / "lost")
    copy(home(server) / "backup", data)
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write(RECOVER)
    (data / "recovery.signal").touch()
    start(server, TEST_POSTGRES)
    # It answers before, but nothing can be written.
    asyncio.run(until(get_database(server), "SELECT NOT pg_is_in_recovery()"))


def copy(source: Path, target: Path) -> None:
    """With the owner of each file, which need not be this process."""
    subprocess.run(["cp", "-a", source, target], check=True)


def run(script: Path, database: str, folder: Path) -> tuple[int, str]:
    """The exit status and the log of a process that cannot reach Kafka."""
    environment = os.environ | {
        "DATABASE_URL": database,
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
        "HTTP_PORT": str(ports.find_free()),
    }
    ended = subprocess.run(
        [sys.executable, script, folder],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )
    return ended.returncode, ended.stderr


async def test_relay_and_worker_refuse_a_restored_database_until_a_replay(
    server: StackContext, tmp_path: Path
) -> None:
    database = get_database(server)
    await asyncio.to_thread(back_up, server)
    await asyncio.to_thread(restore, server)

    for script in (RELAY, WORKER):
        status, log = await asyncio.to_thread(run, script, database, tmp_path)
        assert status == 1
        assert REFUSAL in log
        assert "Traceback" not in log

    connection = await asyncpg.connect(database)
    async with postgres.open_pool(database, name="test", connections_max=2) as pool:
        history = History(connection, [store_of(pool)])
        assert await replay.replay(connection, history, ProgressLine()) == 1

    assert await lease.acquire(connection, new_id()) is not None
    await connection.close()


async def test_relay_and_worker_end_if_the_database_is_restored_while_they_run(
    server: StackContext, kafka_servers: str, tmp_path: Path
) -> None:
    """The worker would park each stream that goes on: versions are missing that it consumed."""
    database = get_database(server)
    counter = new_id()
    await execute(database, CREATE_EFFECTS)
    await asyncio.to_thread(back_up, server)
    with relays(database, tmp_path / "relay.log") as start_relay:
        async with worker(database, kafka_servers, tmp_path) as consuming:
            publishing = start_relay(kafka_servers)
            await send(kafka_servers, record(counter, 1))
            await until_applied(database, counter)
            await until(database, IS_ACTIVE)
            await asyncio.to_thread(restore, server)
            await send(kafka_servers, record(counter, 2))
            async with asyncio.timeout(HANGS_AFTER_SECONDS):
                assert await consuming.wait() == 1
            assert await asyncio.to_thread(publishing.wait, HANGS_AFTER_SECONDS) == 1

    for name in ("worker.log", "relay.log"):
        log = (tmp_path / name).read_text()
        assert REFUSAL in log
        assert "Traceback" not in log
    async with postgres.open_pool(database, name="test", connections_max=1) as pool:
        assert await parked.list_streams(pool, NAME) == []


async def test_without_the_timeline_the_effects_of_a_record_are_lost_in_silence(
    server: StackContext, kafka_servers: str, tmp_path: Path
) -> None:
    """The negative control: the worker continues behind a record of another service, of whose
    effects the restored database knows nothing."""
    database = get_database(server)
    lost, later = new_id(), new_id()
    await execute(database, CREATE_EFFECTS)
    await asyncio.to_thread(back_up, server)
    async with worker(database, kafka_servers, tmp_path):
        await send(kafka_servers, record(lost, 1))
        await until_applied(database, lost)
    await asyncio.to_thread(restore, server)
    await execute(database, FORGET)

    async with worker(database, kafka_servers, tmp_path):
        await send(kafka_servers, record(later, 1))
        await until_applied(database, later)

    async with postgres.open_pool(database, name="test", connections_max=1) as pool:
        assert await effects_of(pool, lost) == []
        assert await parked.list_streams(pool, NAME, lost) == []


async def until(database: str, question: str) -> None:
    connection = await asyncpg.connect(database)
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while not await connection.fetchval(question):
            await asyncio.sleep(0.02)
    await connection.close()


async def execute(database: str, statement: str) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute(statement)
    await connection.close()


async def send(kafka_servers: str, sent: IncomingRecord) -> None:
    """Into the partition of all records here."""
    async with AIOKafkaProducer(bootstrap_servers=kafka_servers) as producer:
        await producer.send_and_wait(
            TOPIC, sent.value, sent.key, partition=sent.partition, headers=list(sent.headers)
        )


async def until_applied(database: str, counter: UUID) -> None:
    async with (
        asyncio.timeout(HANGS_AFTER_SECONDS),
        postgres.open_pool(database, name="test", connections_max=1) as pool,
    ):
        while await effects_of(pool, counter) != [1]:
            await asyncio.sleep(0.02)
