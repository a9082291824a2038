"""A consumer as a Faust application: one agent per topic, one record at a time.

Faust's part is the group, the assignment and the offsets. Exactness is not: that is the version
row which each effect writes in its own transaction.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager

import faust
from faust.types import EventT

from shared.consumer import Consumer, IncomingRecord
from shared.health import health_server
from shared.processes import stop_signal, wait
from shared.settings import Settings

# A killed worker's partitions come back after the session time-out; Faust's own default of 60 s
# would leave them unread for as long.
SESSION_TIMEOUT_SECONDS = 8.0
REBALANCE_TIMEOUT_SECONDS = 8.0
HEARTBEAT_SECONDS = 2.0
COMMIT_SECONDS = 1.0
CRASH_POLL_SECONDS = 0.5


def create_app(consumer: Consumer, bootstrap_servers: str) -> faust.App:
    """The Faust application of a consumer; importing or making it connects to nothing."""
    app = faust.App(
        consumer.name,
        broker=f"kafka://{bootstrap_servers.replace(',', ';')}",
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
    for name in consumer.topics:
        topic = app.topic(name, key_serializer="raw", value_serializer="raw")
        # concurrency 1: with more, Faust may commit past a record that is still in work.
        app.agent(topic, name=f"{consumer.name}.{name}", concurrency=1)(agent_of(consumer))
    return app


def agent_of(consumer: Consumer):  # type: ignore[no-untyped-def]  # Faust's types are its own
    async def agent(stream: faust.Stream[bytes]) -> None:
        # Left to itself, Faust acknowledges the record in hand of an agent that is stopped.
        async for event in stream.noack().events():
            await consumer.take(record_of(event))
            event.ack()

    return agent


def record_of(event: EventT[bytes]) -> IncomingRecord:
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
async def running(app: faust.App) -> AsyncIterator[None]:
    """Start the application; stop it in the end. The record in hand is read again by the next."""
    app.finalize()
    await app.start()
    try:
        yield
    finally:
        await app.stop()


async def run_worker(
    consumer: Consumer, settings: Settings, *background: Coroutine[object, object, None]
) -> None:
    """Consume until SIGTERM or SIGINT, with other endless work beside it."""
    stopping = stop_signal()
    app = create_app(consumer, settings.kafka_bootstrap_servers)
    async with (
        health_server(settings.http_host, settings.http_port, {"kafka": lambda: joined(app)}),
        running(app),
        asyncio.TaskGroup() as tasks,
    ):
        beside = [tasks.create_task(work) for work in background]
        while not stopping.is_set():
            if app.should_stop:
                raise RuntimeError("the consumer ended; its log says why")
            await wait(stopping, CRASH_POLL_SECONDS)
        for task in beside:
            task.cancel()


async def joined(app: faust.App) -> str | None:
    """Whether a worker has its place in the consumer group."""
    if not app.started or app.rebalancing or not app.consumer.assignment():
        return "not yet in the consumer group"
    return None
