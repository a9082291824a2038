"""Orders at a given rate, whether or not earlier ones are confirmed, each followed to its end."""

import argparse
import asyncio
import json
import sys
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

CONNECTIONS_MAX = 400
"""Fewer than the API accepts. An order that finds none free waits, which counts as latency."""
PENDING = "pending"
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
    """As many as are needed at once, kept for later orders."""

    def __init__(self, stack: AsyncExitStack, address: str) -> None:
        self._stack = stack
        self._address = address
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(CONNECTIONS_MAX)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        async with self._free:
            connection = self._reuse() or await self._open()
            yield connection
            self._idle.append(connection)

    def _reuse(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed:
                return connection
        return None

    async def _open(self) -> Connection:
        return await self._stack.enter_async_context(http_client.connect(self._address))


async def main(arguments: argparse.Namespace) -> None:
    shop, numbers, ordered = Shop.load(arguments.shop), count(), list[Ordered]()
    async with AsyncExitStack() as stack:
        connections = Connections(stack, arguments.address)

        async def order(due_at: float) -> None:
            async with connections.one() as connection:
                ordered.append(await follow(connection, shop, next(numbers), due_at))

        began_at, cpu_before = time.time(), time.process_time()
        await open_loop.drive(arguments.rate, arguments.seconds, order)
        own_cpu = time.process_time() - cpu_before
    found = {"began_at": began_at, "own_cpu": own_cpu, "orders": ordered}
    json.dump(found, sys.stdout)


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
    """Whether the API refuses new orders for now."""
    return reply.status == 503 and json.loads(reply.body).get("code") == OVERLOADED


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--shop", type=Path, required=True)
    made.add_argument("--address", required=True, help="host:port of orders-api")
    made.add_argument("--rate", type=int, required=True, help="orders a second")
    made.add_argument("--seconds", type=int, required=True)
    return made


if __name__ == "__main__":
    uvloop.run(main(parser().parse_args()))
