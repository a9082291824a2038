"""A client that appends at a given rate, whether or not earlier appends have been answered.

`relay`: it notifies the relay after each commit, as an API does, and the relay publishes.
`direct`: it sends the record itself after the commit and waits for the broker, so there is nothing
between the commit and the record. (If it dies between the two the record is lost.)

The instant in each value is when the append was due, so that waiting for a busy client counts.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import asyncpg
import uvloop

from benchmarks import rows, servers
from shared.eventsourcing.event_store import APPEND
from shared.messaging import kafka, wire
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id
from shared.runtime.relay_notifier import RelayNotifier
from shared.runtime.settings import Settings

CONNECTIONS_MAX = 32
IN_FLIGHT_MAX = 4_000
"""More appends wait to begin, and the wait counts: the rate is too high for this machine."""

Publish = Callable[[bytes], Awaitable[None]]
"""Called with the value of each committed event."""

Idle = asyncio.LifoQueue[asyncpg.Connection]
"""Connections that are not in use."""

Work = Callable[[float], Coroutine[object, object, None]]
"""Called with the instant at which it was due, in seconds since 1970."""

PACKED_HEADERS = wire.pack(wire.to_headers(rows.HEADERS), to_follow=1)
KEY = rows.EVENT_ID.encode()


async def main(arguments: argparse.Namespace, settings: Settings) -> None:
    async with AsyncExitStack() as stack:
        idle = await open_connections(stack, settings.database_dsn)
        if arguments.how == "direct":
            publish = await create_sender(stack, settings.kafka_bootstrap_servers, arguments.topic)
        else:
            publish = create_notifier(stack, arguments.relay_address)
        await drive(
            arguments.rate,
            arguments.seconds,
            lambda due_at: append(idle, arguments.topic, due_at, publish),
        )


async def open_connections(stack: AsyncExitStack, dsn: str) -> Idle:
    """All connections. A pool of asyncpg would reset the session after each use."""
    idle: Idle = asyncio.LifoQueue(CONNECTIONS_MAX)
    for _ in range(CONNECTIONS_MAX):
        idle.put_nowait(await stack.enter_async_context(servers.connected(dsn)))
    return idle


def create_notifier(stack: AsyncExitStack, address: str) -> Publish:
    relay_notifier = RelayNotifier(address)
    stack.callback(relay_notifier.close)

    async def notify(value: bytes) -> None:
        relay_notifier.notify()

    return notify


async def create_sender(stack: AsyncExitStack, bootstrap_servers: str, topic: str) -> Publish:
    client = kafka.create_producer(Brokers(bootstrap_servers), "open-loop")
    await client.start()
    stack.push_async_callback(client.stop)

    async def send(value: bytes) -> None:
        await client.send_and_wait(
            topic,
            value=value,
            key=KEY,
            partition=choose_partition(value),
            headers=rows.RECORD_HEADERS,
        )

    return send


async def drive(rate: int, seconds: int, work: Work) -> None:
    """Begin `rate` pieces of work a second, for `seconds`, and wait until all are done."""
    slots = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def run_one(due_at: float) -> None:
        try:
            await work(due_at)
        finally:
            slots.release()

    async with asyncio.TaskGroup() as tasks:
        began_at = time.time()
        for number in range(rate * seconds):
            due_at = began_at + number / rate
            await asyncio.sleep(max(0.0, due_at - time.time()))
            await slots.acquire()
            if time.time() >= began_at + seconds:
                break
            tasks.create_task(run_one(due_at))


async def append(idle: Idle, topic: str, due_at: float, publish: Publish) -> None:
    """Append one event to a stream of its own, then publish it."""
    value = rows.create_value(f"{due_at:.6f}").encode()
    event = (
        new_id(),
        rows.EVENT_TYPE,
        1,
        rows.VALUE,
        topic,
        choose_partition(value),
        KEY,
        value,
        PACKED_HEADERS,
        None,
    )
    now = datetime.now(UTC)
    connection = await idle.get()
    try:
        await connection.fetchval(
            APPEND, new_id(), "bench", 0, [event], rows.METADATA, now, None, [], []
        )
    finally:
        idle.put_nowait(connection)
    await publish(value)


def choose_partition(value: bytes) -> int:
    """Any partition; the same for the same value."""
    return value[rows.AT.stop - 1] % servers.PARTITIONS


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("how", choices=("relay", "direct"))
    made.add_argument("--topic", required=True)
    made.add_argument("--rate", type=int, required=True, help="appends a second")
    made.add_argument("--seconds", type=int, required=True)
    made.add_argument("--relay-address", help="host:port of the relay")
    return made


if __name__ == "__main__":
    uvloop.run(main(parser().parse_args(), Settings()))
