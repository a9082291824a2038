"""The process of a consumer: its group reader, its health, and an orderly stop."""

import asyncio
import sys
from collections.abc import Coroutine

from shared.inbox.consumer import Consumer
from shared.inbox.group_reader import GroupReader
from shared.messaging.log_ends import RecordsLost, watch_committed
from shared.messaging.topics import list_partitions
from shared.runtime.postgres import Restored
from shared.runtime.processes import bounded_stop, collect_garbage_less_often, create_stop_event
from shared.runtime.settings import Settings
from shared.web.health import health_server

STOP_SECONDS_MAX = 12.0
"""Less than supervisors wait before they kill: the log names the reason then."""


async def run_worker(
    consumer: Consumer, settings: Settings, *background: Coroutine[object, object, None]
) -> None:
    """Consume until SIGTERM or SIGINT, with other endless work in the background.

    Raises:
        SystemExit: Kafka or PostgreSQL has lost records, with one line.
    """
    watching = watch_committed(settings.brokers, consumer.name, list_partitions(consumer.topics))
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
    reader = GroupReader(consumer, settings.brokers)
    checks = {
        "kafka": lambda: check_membership(reader),
        "records": lambda: check_progress(consumer),
    }
    with bounded_stop(STOP_SECONDS_MAX) as begin_stop:
        async with (
            health_server(settings.http_host, settings.http_port, checks),
            asyncio.TaskGroup() as tasks,
        ):
            running = [tasks.create_task(work) for work in background]
            await consumer.refuse_restored()
            collect_garbage_less_often()
            running.append(tasks.create_task(reader.run()))
            try:
                await stopping.wait()
            finally:
                begin_stop()
            for task in running:
                task.cancel()


async def check_membership(reader: GroupReader) -> str | None:
    """Whether a worker has its place in the consumer group."""
    return None if reader.is_member else "not yet in the consumer group"


async def check_progress(consumer: Consumer) -> str | None:
    """Whether the records in hand can be taken."""
    return consumer.obstacle
