"""A consumer as a Faust application: all topics together, one batch of records at a time.

Faust's part is the group, the assignment and the offsets. Exactness is not: that is the version
row which is written in the transaction of the effects.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import faust
from aiokafka import ConsumerRecord, TopicPartition

from shared.inbox.consumer import Consumer
from shared.inbox.faust_transport import App
from shared.messaging.consumer_groups import WORKER_SESSION_SECONDS
from shared.messaging.log_ends import RecordsLost, watch_committed
from shared.messaging.records import IncomingRecord
from shared.messaging.topics import TOPICS
from shared.runtime.brokers import MECHANISM, Brokers, create_ssl_context
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

REBALANCE_TIMEOUT_SECONDS = 8.0
HEARTBEAT_SECONDS = 2.0
COMMIT_SECONDS = 1.0
CRASH_POLL_SECONDS = 0.5
STOP_SECONDS_MAX = 12.0
"""Less than supervisors wait before they kill: the log names the reason then."""


def create_app(consumer: Consumer, brokers: Brokers) -> faust.App:
    """The Faust application of a consumer; importing or making it connects to nothing."""

    async def take(records: Sequence[ConsumerRecord]) -> None:
        await consumer.take([to_record(each) for each in records])

    return App(
        consumer.name,
        take,
        consumer.topics,
        **faust_options(brokers),
        store="memory://",
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=WORKER_SESSION_SECONDS,
        broker_rebalance_timeout=REBALANCE_TIMEOUT_SECONDS,
        broker_heartbeat_interval=HEARTBEAT_SECONDS,
        broker_commit_interval=COMMIT_SECONDS,
        stream_wait_empty=False,
        autodiscover=False,
    )


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


def to_record(record: ConsumerRecord) -> IncomingRecord:
    return IncomingRecord(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=record.headers,
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
    consumer.begin_counts()
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
