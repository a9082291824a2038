"""Clients that place one order after another, each as soon as its previous one is answered."""

import argparse
import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

import uvloop

from benchmarks.arrivals import percentiles
from benchmarks.delivery import http_client
from benchmarks.delivery.http_client import Connection
from benchmarks.delivery.shop import Shop

MILLISECONDS = 1_000


async def main(arguments: argparse.Namespace) -> None:
    shop = Shop.load(arguments.shop)
    async with AsyncExitStack() as stack:
        connections = [
            await stack.enter_async_context(http_client.connect(arguments.address))
            for _ in range(arguments.connections)
        ]
        numbers = count()
        cpu_before, began_at = time.process_time(), time.perf_counter()
        taken = await asyncio.gather(
            *(
                place(each, shop, numbers, began_at + arguments.seconds, arguments.keys)
                for each in connections
            )
        )
        seconds, cpu = time.perf_counter() - began_at, time.process_time() - cpu_before
    all_taken = [each for one in taken for each in one]
    ranks = percentiles(all_taken)
    figures = {
        "answered": len(all_taken),
        "rate": len(all_taken) / seconds,
        "p50": ranks["p50"],
        "p99": ranks["p99"],
        "own_share": cpu / seconds,
    }
    json.dump(figures, sys.stdout)


async def place(
    connection: Connection, shop: Shop, numbers: "count[int]", ends_at: float, keys: bool
) -> list[float]:
    """The milliseconds that each order took."""
    taken = []
    while (began_at := time.perf_counter()) < ends_at:
        await connection.ask(shop.placement(next(numbers), with_key=keys), status=201)
        taken.append((time.perf_counter() - began_at) * MILLISECONDS)
    return taken


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--shop", type=Path, required=True)
    made.add_argument("--address", required=True, help="host:port")
    made.add_argument("--connections", type=int, required=True)
    made.add_argument("--seconds", type=int, required=True)
    made.add_argument("--keys", action="store_true", help="send Idempotency-Key")
    return made


if __name__ == "__main__":
    uvloop.run(main(parser().parse_args()))
