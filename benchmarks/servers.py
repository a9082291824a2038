"""What a measurement needs of servers: an empty database, an empty topic, a process of ours."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx
import psutil
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import NewTopic

from fetching.errors import Failure
from local_stack import ports, postgres
from local_stack.stack_spec import HOST, StackContext
from shared.runtime import postgres as service_postgres
from test_support.kafka_admin import admin_client

PARTITIONS = 4
FETCH_WAIT_MILLISECONDS = 50
STOP_SECONDS_MAX = 30
READY_SECONDS_MAX = 30
POLL_SECONDS = 0.05
LOG_CHARACTERS_SHOWN = 2_000
OUTPUT_BYTES_MAX = 1 << 24
SPAN_SINK = Path(__file__).with_name("delivery") / "span_sink.py"

CREATE_TIME: Mapping[str, str] = {"message.timestamp.type": "CreateTime"}
LOG_APPEND_TIME: Mapping[str, str] = {"message.timestamp.type": "LogAppendTime"}
"""The broker stamps each record when it appends it, in whole milliseconds."""


@asynccontextmanager
async def database(context: StackContext, *packages: str) -> AsyncIterator[str]:
    """The DSN of a new database with the tables of the packages; gone afterwards."""
    name = f"bench_{uuid4().hex}"
    await administer(context, f"CREATE DATABASE {name}")
    try:
        dsn = postgres.dsn(context, postgres.SUPERUSER, name)
        await service_postgres.migrate(dsn, *packages)
        yield dsn
    finally:
        await administer(context, f"DROP DATABASE {name} WITH (FORCE)")


async def administer(context: StackContext, sql: str) -> None:
    connection = await asyncpg.connect(postgres.dsn(context, postgres.SUPERUSER))
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def topic(
    context: StackContext, timestamps: Mapping[str, str] = CREATE_TIME
) -> AsyncIterator[str]:
    """The name of a new topic with PARTITIONS partitions; gone afterwards, with its disk space."""
    name = f"bench-{uuid4().hex}"
    async with admin_client(context.address("kafka")) as client:
        await client.create_topics([NewTopic(name, PARTITIONS, 1, topic_configs=dict(timestamps))])
        yield name
        await client.delete_topics([name])


@asynccontextmanager
async def tail(context: StackContext, name: str) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer of all partitions of a topic, from its present end."""
    async with reader(context, await ends(context, name)) as consumer:
        yield consumer


@asynccontextmanager
async def reader(
    context: StackContext, offsets: Mapping[TopicPartition, int]
) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer of these partitions from these offsets on."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=context.address("kafka"),
        fetch_max_wait_ms=FETCH_WAIT_MILLISECONDS,
        fetch_min_bytes=1,
    )
    await consumer.start()
    try:
        consumer.assign(list(offsets))
        for partition, offset in offsets.items():
            consumer.seek(partition, offset)
        yield consumer
    finally:
        await consumer.stop()


async def ends(context: StackContext, name: str) -> Mapping[TopicPartition, int]:
    """Where the next record of each partition will be."""
    async with reader(context, {}) as consumer:
        found: Mapping[TopicPartition, int] = await consumer.end_offsets(partitions_of(name))
        return found


def partitions_of(name: str) -> list[TopicPartition]:
    return [TopicPartition(name, number) for number in range(PARTITIONS)]


@asynccontextmanager
async def bounded(seconds_max: float, what: str) -> AsyncIterator[None]:
    """Raises Failure if the block takes longer."""
    try:
        async with asyncio.timeout(seconds_max):
            yield
    except TimeoutError as error:
        raise Failure(f"{what} took longer than {seconds_max:.0f} s") from error


class Running:
    """A process under measurement."""

    def __init__(self, process: asyncio.subprocess.Process, what: str, output: int) -> None:
        self._process = process
        self._what = what
        self._output = output
        self._seen = psutil.Process(process.pid)

    def demand_alive(self) -> None:
        """Raises Failure, with the end of its output, if the process has ended."""
        if self._process.returncode is not None:
            raise Failure(
                f"{self._what} ended with {self._process.returncode} while it was measured",
                details=self.words[-LOG_CHARACTERS_SHOWN:].splitlines(),
            )

    @property
    def words(self) -> str:
        """What it has printed."""
        return os.pread(self._output, OUTPUT_BYTES_MAX, 0).decode(errors="replace")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def resident_bytes(self) -> int:
        size: int = self._seen.memory_info().rss
        return size

    @property
    def cpu_seconds(self) -> float:
        times = self._seen.cpu_times()
        return float(times.user + times.system)

    def send(self, signal_number: int) -> None:
        self._process.send_signal(signal_number)

    async def wait_until_finished(self, seconds_max: float) -> None:
        """Wait until the process has ended by itself. Raises Failure if it did not end well."""
        async with bounded(seconds_max, self._what):
            if await self._process.wait():
                self.demand_alive()

    async def stop(self) -> None:
        """Send SIGTERM, and wait until it has ended."""
        if self._process.returncode is None:
            self._process.terminate()
            async with bounded(STOP_SECONDS_MAX, f"to stop {self._what}"):
                await self._process.wait()

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def python(
    context: StackContext, arguments: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[Running]:
    """`python arguments` as a process; killed at the end of the block if it still runs."""
    async with process(context, [sys.executable, *arguments], environment) as running:
        yield running


@asynccontextmanager
async def process(
    context: StackContext, command: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[Running]:
    """Any command as a process; killed at the end of the block if it still runs."""
    what = " ".join(command[1:])
    with (context.folder / "logs" / f"bench-{uuid4().hex}.log").open("w+b") as output:
        started = await asyncio.create_subprocess_exec(
            *command,
            env=os.environ | environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        running = Running(started, what, output.fileno())
        try:
            yield running
        finally:
            await running.kill()


UNOBSERVED = {"OTEL_METRICS_EXPORTER": "none", "LOG_LEVEL": "ERROR"}
"""In the environment of a process: no metrics but counters in memory, no outcomes in its log."""


@asynccontextmanager
async def span_sink(context: StackContext) -> AsyncIterator[str]:
    """A collector that discards spans; yields its address."""
    environment = {"HTTP_HOST": HOST, "HTTP_PORT": str(ports.find_free())}
    async with python(context, [str(SPAN_SINK)], environment) as running:
        await wait_until_ready(running, environment)
        yield f"http://{HOST}:{environment['HTTP_PORT']}"


def settings_of_process(context: StackContext, dsn: str) -> dict[str, str]:
    """The environment of a process of a service. A relay is notified on its HTTP_PORT, too."""
    return {
        "DATABASE_URL": dsn,
        "KAFKA_BOOTSTRAP_SERVERS": context.address("kafka"),
        "HTTP_HOST": HOST,
        "HTTP_PORT": str(ports.find_free()),
    }


@asynccontextmanager
async def relay(context: StackContext, environment: Mapping[str, str]) -> AsyncIterator[Running]:
    """The relay of a service, as the stack runs it."""
    async with python(context, ["-m", "users_svc", "relay"], environment) as running:
        yield running


async def wait_until_active(relay: Running, connection: asyncpg.Connection) -> None:
    """Until a relay holds the lease."""
    async with bounded(READY_SECONDS_MAX, "to activate a relay"):
        while await connection.fetchval("SELECT lease_until < clock_timestamp() FROM relay"):
            relay.demand_alive()
            await asyncio.sleep(POLL_SECONDS)


async def wait_until_ready(process: Running, environment: Mapping[str, str]) -> None:
    """Until a process of ours reports that it is ready."""
    address = f"http://{environment['HTTP_HOST']}:{environment['HTTP_PORT']}/health/ready"
    async with bounded(READY_SECONDS_MAX, "to start a process"), httpx.AsyncClient() as client:
        while not await is_ready(client, address):
            process.demand_alive()
            await asyncio.sleep(POLL_SECONDS)


async def is_ready(client: httpx.AsyncClient, address: str) -> bool:
    try:
        return (await client.get(address)).is_success
    except httpx.HTTPError:
        return False
