"""Faust's application with a consumer that reads committed records only, and commits past a repeat.

Faust keeps the offsets of acknowledged records in a list, and commits up to the first gap in it. A
record that is delivered again while its first offset is being committed gets into the list twice.
Faust takes the repeat for a gap: each commit then proceeds by a single record, so that the program
seems to stall, and a restart reads all of them again
(https://github.com/robinhood/faust/issues/625).
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiokafka
import faust
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, EventT
from faust.types.transports import TransportT

from shared.inbox.group_reader import (
    COMMIT_PERIOD_SECONDS,
    HEARTBEAT_SECONDS,
    REBALANCE_TIMEOUT_SECONDS,
    SESSION_TIMEOUT_SECONDS,
)
from shared.messaging.reading import COMMITTED_ONLY
from shared.messaging.records import IncomingRecord
from shared.runtime.brokers import MECHANISM, Brokers, create_ssl_context
from shared.runtime.processes import wait

CRASH_POLL_SECONDS = 0.5


class ConsumerThread(driver.AIOKafkaConsumerThread):
    def _create_consumer(self, loop: asyncio.AbstractEventLoop) -> aiokafka.AIOKafkaConsumer:
        """The client of Kafka. Faust reads committed records only when it is in a transaction."""
        client = super()._create_consumer(loop)
        client._isolation_level = COMMITTED_ONLY
        return client


class Consumer(driver.Consumer):
    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def _new_offset(self, tp: TP) -> int | None:
        """Find the offset to commit, among offsets that are not committed, each once."""
        acked, committed = self._acked[tp], self._committed_offset[tp] or 0
        acked[:] = {offset for offset in acked if offset >= committed}
        return super()._new_offset(tp)


class Transport(driver.Transport):
    Consumer = Consumer


class App(faust.App):
    """An application with this transport."""

    def _new_transport(self) -> TransportT:
        return Transport(self.conf.broker_consumer, self)


def create_app(name: str, brokers: Brokers, **options: Any) -> App:
    """An application that ends up with all partitions soon after another one was killed; `options`
    are further ones of Faust. It connects to nothing."""
    return App(
        name,
        **broker_options(brokers),
        broker_session_timeout=SESSION_TIMEOUT_SECONDS,
        broker_rebalance_timeout=REBALANCE_TIMEOUT_SECONDS,
        broker_heartbeat_interval=HEARTBEAT_SECONDS,
        broker_commit_interval=COMMIT_PERIOD_SECONDS,
        **options,
    )


def broker_options(brokers: Brokers) -> dict[str, Any]:
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


async def wait_for_end(app: faust.App, stopping: asyncio.Event) -> None:
    """Returns when the process is to stop. Raises RuntimeError if the application has ended."""
    while not stopping.is_set():
        if app.should_stop:
            raise RuntimeError("the consumer has ended; its log has the reason")
        await wait(stopping, CRASH_POLL_SECONDS)


async def check_membership(app: faust.App) -> str | None:
    """Whether the application has its place in the consumer group."""
    if not app.started or app.rebalancing or not app.consumer.assignment():
        return "not yet in the consumer group"
    return None
