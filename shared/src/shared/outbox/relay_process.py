"""The relay as a process: telemetry, health, notifications, and its end when it is fenced."""

import asyncio
import logging
import os
import sys

from shared.messaging.log_ends import RecordsLost
from shared.outbox.lease import ForeignCheckpoint
from shared.outbox.relay import Relay
from shared.runtime import telemetry
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Restored
from shared.runtime.processes import collect_garbage_less_often, create_stop_event
from shared.runtime.relay_notifier import Listener
from shared.runtime.settings import Settings
from shared.web.health import health_server

EXIT_FENCED = 75

log = logging.getLogger(__name__)


async def run_relay(name: str, settings: Settings) -> None:
    """Publish the outbox until SIGTERM or SIGINT. Is notified on UDP port `http_port`."""
    collect_garbage_less_often()
    notified = asyncio.Event()
    refusal: str | None = None
    loop = asyncio.get_running_loop()
    address = (settings.http_host, settings.http_port)
    with telemetry.configured(name, settings):
        transport, _ = await loop.create_datagram_endpoint(lambda: Listener(notified), address)
        relay = Relay(
            settings.database_dsn,
            settings.brokers,
            name=name,
            owner=new_id(),
            notified=notified,
            stopping=create_stop_event(),
            fence=end_at_once,
        )

        async def outbox() -> str | None:
            return relay.obstacle

        try:
            async with health_server(*address, {"outbox": outbox}):
                await relay.run()
        except* ForeignCheckpoint:
            refusal = ForeignCheckpoint.__doc__
        except* Restored:
            refusal = Restored.__doc__
        except* RecordsLost as group:
            refusal = str(RecordsLost.first_of(group))
        finally:
            transport.close()
    if refusal is not None:
        sys.exit(f"hometown: {name} does not start: {refusal}")


def end_at_once() -> None:
    """Another relay may be active: nothing that the Kafka client still holds may go out."""
    log.error("lease lost, leaving at once")
    os._exit(EXIT_FENCED)
