"""After any kill, `up` restores the stack; no data is lost and no process is left behind."""

import asyncio
import os
import signal
import time

import asyncpg
import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import NewTopic

from local_stack import orphans, ports, supervision
from local_stack.down import down
from local_stack.postgres import dsn, owner
from local_stack.settings import usual_run_dir
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.status import status
from local_stack.up import up
from test_support.kafka_admin import create_topics
from test_support.waits import HANGS_AFTER_SECONDS

POLL_SECONDS = 0.1
RECORD = b"survives"


@pytest.fixture(scope="module")
def context(running: StackContext) -> StackContext:
    """A running stack that holds a row and a record."""
    asyncio.run(write_row_and_record(running))
    return running


async def write_row_and_record(context: StackContext) -> None:
    """A row that is committed and a record that is acknowledged."""
    connection = await asyncpg.connect(dsn(context, owner("users")))
    await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    await connection.close()
    await create_topics(context.address("kafka"), NewTopic("kept", 1, 1))
    async with AIOKafkaProducer(bootstrap_servers=context.address("kafka"), acks="all") as producer:
        await producer.send_and_wait("kept", RECORD)


async def read_row_and_record(context: StackContext) -> tuple[int, bytes]:
    connection = await asyncpg.connect(dsn(context, owner("users")))
    answer = await connection.fetchval("SELECT answer FROM kept")
    await connection.close()
    consumer = AIOKafkaConsumer(
        "kept", bootstrap_servers=context.address("kafka"), auto_offset_reset="earliest"
    )
    async with asyncio.timeout(HANGS_AFTER_SECONDS), consumer:
        record = await consumer.getone()
    return answer, record.value


def states(spec: StackSpec, context: StackContext) -> dict[str, str]:
    return {each.name: each.state for each in status(spec, context.settings)}


def kill(*processes: psutil.Process) -> None:
    for process in processes:
        process.kill()
    psutil.wait_procs(processes, timeout=HANGS_AFTER_SECONDS)


def test_after_killing_everything_up_loses_nothing(small: StackSpec, context: StackContext) -> None:
    # The supervisor first: it could restart a process between the look and the kill.
    kill(psutil.Process(supervision.supervisor_pid(context.folder)))
    kill(*orphans.find(context.folder))
    assert set(states(small, context).values()) == {"stopped"}
    again = up(small, context.settings)
    assert again.ports == context.ports
    assert asyncio.run(read_row_and_record(again)) == (42, RECORD)


def test_after_killing_the_supervisor_alone_up_replaces_its_orphans(
    small: StackSpec, context: StackContext, capsys: pytest.CaptureFixture[str]
) -> None:
    kill(psutil.Process(supervision.supervisor_pid(context.folder)))
    assert set(states(small, context).values()) == {"orphaned"}
    again = up(small, context.settings)
    assert "ended what was left without a supervisor: " in capsys.readouterr().out
    assert again.ports == context.ports
    assert asyncio.run(read_row_and_record(again)) == (42, RECORD)
    assert set(states(small, again).values()) == {"ready"}


def test_after_killing_the_supervisor_alone_down_ends_its_orphans(
    web_only: StackSpec, running_web: StackContext
) -> None:
    kill(psutil.Process(supervision.supervisor_pid(running_web.folder)))
    down(web_only, running_web.folder)
    assert orphans.find(running_web.folder) == []


def test_a_killed_process_is_restarted(web_only: StackSpec, running_web: StackContext) -> None:
    [before] = status(web_only, running_web.settings)
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    deadline = time.monotonic() + HANGS_AFTER_SECONDS
    while True:
        [after] = status(web_only, running_web.settings)
        if after.state == "ready" and after.pid != before.pid:
            break
        assert time.monotonic() < deadline, after
        time.sleep(POLL_SECONDS)


def test_down_leaves_no_process_and_up_finds_its_data(
    small: StackSpec, context: StackContext
) -> None:
    down(small, context.folder)
    assert orphans.find(context.folder) == []
    assert all(ports.is_free(port) for port in context.ports.values())
    context.folder.way_file.unlink()  # as in a folder of before each way had one
    folder = usual_run_dir("processes", context.folder.path)
    again = up(small, context.settings.model_copy(update={"run_dir": folder}))
    assert asyncio.run(read_row_and_record(again)) == (42, RECORD)
