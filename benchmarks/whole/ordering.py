"""Orders at a given rate, whether or not earlier ones are confirmed, each followed to its end."""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import uvloop

from benchmarks.delivery import http_client, open_loop
from benchmarks.delivery.http_client import Connection, Reply, UnexpectedStatus
from benchmarks.delivery.shop import Shop

CONNECTION_SECONDS = 5
"""How long orders of the rate can hold connections before one waits, which counts as latency. They
are opened before the first order and kept, as those of a proxy are: an API accepts one connection
in each round of its loop, so that it is slow to accept new ones when it is busy."""
CONNECTIONS_MAX = 4_000
"""Fewer than the API accepts."""
OPENED_AT_ONCE = 100
PENDING = "pending"
CONFIRMED = "confirmed"
REJECTED = "rejected"
REFUSED = "refused"
"""Of an order that the API did not accept, because earlier ones wait too long."""
OVERLOADED = "overloaded"


class Ordered(NamedTuple):
    """Instants in seconds since 1970: planned, answered as placed, answered as decided. An order
    that was REFUSED has no id, and was answered once."""

    order_id: str
    due_at: float
    placed_at: float
    decided_at: float
    status: str


class Connections:
    """As many as are needed at once; they take turns, so that none is closed for being idle."""

    def __init__(self, stack: AsyncExitStack, address: str) -> None:
        self._stack = stack
        self._address = address
        self._idle: asyncio.Queue[Connection] = asyncio.Queue()

    async def open(self, count: int) -> None:
        for begin in range(0, count, OPENED_AT_ONCE):
            more = range(begin, min(begin + OPENED_AT_ONCE, count))
            for each in await asyncio.gather(*(self._open() for _ in more)):
                self._idle.put_nowait(each)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        connection = await self._idle.get()
        if connection.is_closed:
            connection = await self._open()
        yield connection
        self._idle.put_nowait(connection)

    async def _open(self) -> Connection:
        return await self._stack.enter_async_context(http_client.connect(self._address))


async def main(arguments: argparse.Namespace) -> None:
    shop, numbers, ordered = Shop.load(arguments.shop), count(), list[Ordered]()
    async with AsyncExitStack() as stack:
        connections = Connections(stack, arguments.address)
        await connections.open(min(arguments.rate * CONNECTION_SECONDS, CONNECTIONS_MAX))

        async def order(due_at: float) -> None:
            async with connections.one() as connection:
                ordered.append(await follow(connection, shop, next(numbers), due_at))

        began_at, cpu_before = time.time(), time.process_time()
        await open_loop.drive(arguments.rate, arguments.seconds, order)
        own_cpu = time.process_time() - cpu_before
    found = {"began_at": began_at, "own_cpu": own_cpu, "orders": ordered}
    arguments.to.write_text(json.dumps(found))


async def follow(connection: Connection, shop: Shop, number: int, due_at: float) -> Ordered:
    """Place an order, and wait until it is decided, unless it is refused."""
    try:
        order = json.loads(await connection.ask(shop.placement(number), status=201))
    except UnexpectedStatus as error:
        if not is_overloaded(error.reply):
            raise
        return Ordered("", due_at, time.time(), time.time(), REFUSED)
    placed_at = time.time()
    while order["status"] == PENDING:
        order = json.loads(await connection.ask(shop.decision(order["order_id"]), status=200))
    return Ordered(order["order_id"], due_at, placed_at, time.time(), order["status"])


def is_overloaded(reply: Reply) -> bool:
    """Whether the API refuses new orders for now, and says when to try again."""
    if reply.status != 503 or reply.retry_after is None:
        return False
    return json.loads(reply.body).get("code") == OVERLOADED  # type: ignore[no-any-return]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--shop", type=Path, required=True)
    made.add_argument("--address", required=True, help="host:port of orders-api")
    made.add_argument("--rate", type=int, required=True, help="orders a second")
    made.add_argument("--seconds", type=int, required=True)
    made.add_argument("--to", type=Path, required=True, help="the file for what was measured")
    return made


if __name__ == "__main__":
    uvloop.run(main(parser().parse_args()))
