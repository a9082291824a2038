"""A consumer as a Faust application: one agent for all topics, one batch of records at a time.

Faust's part is the group, the assignment and the offsets. Exactness is not: that is the version
row which is written in the transaction of the effects.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

import faust
from aiokafka import TopicPartition
from faust.types import ChannelT, EventT

from shared.inbox.consumer import Consumer
from shared.inbox.faust_transport import WorkerApp
from shared.messaging.log_ends import RecordsLost, watch_committed
from shared.messaging.records import IncomingRecord
from shared.messaging.topics import TOPICS
from shared.runtime import failpoints
from shared.runtime.brokers import MECHANISM, Brokers, create_ssl_context
from shared.runtime.failpoints import Failpoint
from shared.runtime.postgres import Restored
from shared.runtime.processes import (
    bounded_stop,
    collect_garbage_less_often,
    create_stop_event,
    wait,
)
from shared.runtime.settings import Settings
from shared.web.health import health_server

log = logging.getLogger(__name__)

BATCH_MESSAGES_MAX = 200
"""Messages in one transaction: more would save little, and hold their streams longer."""
BATCH_PERIOD_SECONDS = 0.015
"""Between the beginnings of two batches: what arrives meanwhile shares a transaction."""

# A killed worker's partitions come back after the session time-out; Faust's own default of 60 s
# would leave them unread for as long.
SESSION_TIMEOUT_SECONDS = 8.0
REBALANCE_TIMEOUT_SECONDS = 8.0
HEARTBEAT_SECONDS = 2.0
COMMIT_SECONDS = 1.0
CRASH_POLL_SECONDS = 0.5
STOP_SECONDS_MAX = 12.0
"""Less than supervisors wait before they kill: the log names the reason then."""


def create_app(consumer: Consumer, brokers: Brokers) -> faust.App:
    """The Faust application of a consumer; importing or making it connects to nothing."""
    app = WorkerApp(
        consumer.name,
        **faust_options(brokers),
        store="memory://",
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=SESSION_TIMEOUT_SECONDS,
        broker_rebalance_timeout=REBALANCE_TIMEOUT_SECONDS,
        broker_heartbeat_interval=HEARTBEAT_SECONDS,
        broker_commit_interval=COMMIT_SECONDS,
        stream_wait_empty=False,
        autodiscover=False,
    )
    topics = app.topic(*consumer.topics, key_serializer="raw", value_serializer="raw")
    # concurrency 1: with more, Faust may commit past a record that is still in work.
    app.agent(topics, name=consumer.name, concurrency=1)(create_agent(app, consumer))
    return app


def faust_options(brokers: Brokers) -> dict[str, Any]:
    """The options of a Faust application: the address of Kafka and the login."""
    url = f"kafka://{brokers.servers.replace(',', ';')}"
    if brokers.login is None:
        return {"broker": url}
    credentials = faust.SASLCredentials(
        username=brokers.login.username,
        password=brokers.login.password,
        ssl_context=create_ssl_context(brokers.login.ca_file),
        mechanism=MECHANISM,
    )
    return {"broker": url, "broker_credentials": credentials}


def create_agent(app: faust.App, consumer: Consumer):  # type: ignore[no-untyped-def]  # Faust's types
    async def agent(stream: faust.Stream[bytes]) -> None:
        # Left to itself, Faust acknowledges the record in hand of an agent that is stopped.
        records = stream.noack()
        assert isinstance(records.channel, ChannelT)
        batch: list[EventT[bytes]] = []
        clock = asyncio.get_running_loop().time
        begun_at = float("-inf")
        async for event in records.events():
            batch.append(event)
            if len(batch) < BATCH_MESSAGES_MAX:
                if records.channel.empty():
                    await asyncio.sleep(begun_at + BATCH_PERIOD_SECONDS - clock())
                if not records.channel.empty():
                    continue
            begun_at = clock()
            await consumer.take([to_record(each) for each in batch])
            for each in batch:
                each.ack()
            failpoints.hit(Failpoint.RECORDS_MARKED_DONE)
            batch.clear()

    async def agent_or_end(stream: faust.Stream[bytes]) -> None:
        try:
            await agent(stream)
        except Exception as error:
            # Faust would start the agent again behind the record in hand, and commit past it.
            log.exception("%s met a bug in itself", consumer.name)
            await app.crash(error)
            await asyncio.Event().wait()

    return agent_or_end


def to_record(event: EventT[bytes]) -> IncomingRecord:
    message = event.message
    headers = message.headers or ()
    return IncomingRecord(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=list(headers.items() if isinstance(headers, Mapping) else headers),
    )


@asynccontextmanager
async def run_app(app: faust.App) -> AsyncIterator[None]:
    """Start the application, and stop it at exit; the next one reads the record in hand again."""
    app.finalize()
    await app.start()
    try:
        yield
    finally:
        await app.stop()


async def run_worker(
    consumer: Consumer, settings: Settings, *background: Coroutine[object, object, None]
) -> None:
    """Consume until SIGTERM or SIGINT, with other endless work in the background.

    Raises:
        SystemExit: Kafka or PostgreSQL has lost records, with one line.
    """
    watching = watch_committed(settings.brokers, consumer.name, list_partitions(consumer))
    refusal: str | None = None
    try:
        await consume(consumer, settings, watching, *background)
    except* Restored:
        refusal = Restored.__doc__
    except* RecordsLost as group:
        refusal = str(RecordsLost.first_of(group))
    if refusal is not None:
        sys.exit(f"hometown: {consumer.name} does not consume: {refusal}")


async def consume(
    consumer: Consumer, settings: Settings, *background: Coroutine[object, object, None]
) -> None:
    stopping = create_stop_event()
    app = create_app(consumer, settings.brokers)
    checks = {"kafka": lambda: check_membership(app), "records": lambda: check_progress(consumer)}
    with bounded_stop(STOP_SECONDS_MAX) as begin_stop:
        async with (
            health_server(settings.http_host, settings.http_port, checks),
            asyncio.TaskGroup() as tasks,
        ):
            running = [tasks.create_task(work) for work in background]
            await consumer.refuse_restored()
            collect_garbage_less_often()
            async with run_app(app):
                try:
                    await wait_for_end(app, stopping)
                finally:
                    begin_stop()
            for task in running:
                task.cancel()


async def wait_for_end(app: faust.App, stopping: asyncio.Event) -> None:
    """Returns when the process is to stop. Raises RuntimeError if the application has ended."""
    while not stopping.is_set():
        if app.should_stop:
            raise RuntimeError("the consumer has ended; its log has the reason")
        await wait(stopping, CRASH_POLL_SECONDS)


def list_partitions(consumer: Consumer) -> list[TopicPartition]:
    """Of all topics that it reads."""
    return [
        TopicPartition(name, number)
        for name in consumer.topics
        for number in range(TOPICS[name].partitions)
    ]


async def check_membership(app: faust.App) -> str | None:
    """Whether a worker has its place in the consumer group."""
    if not app.started or app.rebalancing or not app.consumer.assignment():
        return "not yet in the consumer group"
    return None


async def check_progress(consumer: Consumer) -> str | None:
    """Whether the records in hand can be taken."""
    return consumer.obstacle
