"""scaling: one and two of each process, on cores of their own, and what a unit of work costs then.

A second process is worth a core if the CPU of a unit stays the same: of the process, and of the
servers that both share.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import psutil

from benchmarks import process_tree, servers
from benchmarks.delivery import consuming, draining, placing, shop
from benchmarks.delivery.consuming import Bench
from benchmarks.delivery.sizes import Size
from benchmarks.delivery.users_store import open_users_store
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from benchmarks.servers import Running
from fetching.errors import Failure
from local_stack import supervision
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.messaging import topics
from shared.runtime.brokers import Brokers
from shared.runtime.progress import tell_in_place

COUNTS = (1, 2)
CONNECTIONS = 8
"""To each API."""
JOIN_SECONDS = 12
"""Longer than the rebalance of a consumer group."""
CLIENT_SECONDS_MORE_MAX = 60
MILLISECONDS = 1_000

WORKERS = "orders decided on by users-worker"
APIS = "orders placed by orders-api"
RELAY = "rows published by one relay"
SERVERS = ("postgres", "kafka")


async def measure(context: StackContext, size: Size) -> list[Series]:
    """Raises Failure on a machine with less than two cores, or that cannot pin processes."""
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < len(COUNTS):
        raise Failure("processes cannot be pinned to two cores here")
    samples = Samples(list)
    await topics.create(Brokers(context.address("kafka")))
    await placing.create_tables(context)
    async with open_users_store(context) as store:
        bench = Bench(context, store.dsn, store.connection, store.users)
        for number in range(1, size.rounds + 1):
            for count in COUNTS:
                tell_in_place(f"scaling: round {number} of {size.rounds}, {count} of each")
                pin_servers(context, count)
                await measure_workers(bench, size.messages, count, samples)
                await measure_apis(context, size.placing_seconds, count, samples)
            tell_in_place(f"scaling: round {number} of {size.rounds}, the relay")
            pin_servers(context, 1)
            await measure_relay(context, size.drain_rows, samples)
    return as_series(samples)


def list_cores() -> list[int]:
    """Two cores that this process may use."""
    return sorted(os.sched_getaffinity(0))[: len(COUNTS)]


def pin(pid: int, cores: Sequence[int]) -> None:
    """Let a process and those below it use these cores alone."""
    for process in process_tree.family(pid):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):  # it has just ended
            for thread in process.threads():
                os.sched_setaffinity(thread.id, cores)


def pin_servers(context: StackContext, count: int) -> None:
    """Next to one process the servers have the other core; two share both cores with them."""
    cores = list_cores()[1:] if count == 1 else list_cores()
    for program in (supervision.programs(context.folder) or {}).values():
        pin(program.pid, cores)


@asynccontextmanager
async def costs(
    context: StackContext, name: str, processes: Sequence[Running], samples: Samples
) -> AsyncIterator[dict[str, float]]:
    """Record the rate, and the CPU of one unit of work; the block sets `units` and `seconds`."""
    done: dict[str, float] = {}
    before = process_tree.servers_cpu_seconds(context)
    own = sum(each.cpu_seconds for each in processes)
    yield done
    after = process_tree.servers_cpu_seconds(context)
    used = {each: after[each] - before[each] for each in SERVERS}
    used["own"] = sum(each.cpu_seconds for each in processes) - own
    samples[name].append(done["units"] / done["seconds"])
    for what, seconds in used.items():
        samples[name_cpu(name, what)].append(seconds * MILLISECONDS / done["units"])


def name_rate(what: str, count: int) -> str:
    return f"{what}, {count} process{'es' if count > 1 else ''}"


def name_cpu(name: str, what: str) -> str:
    return f"{name}, {what} CPU of one"


async def measure_workers(bench: Bench, orders: int, count: int, samples: Samples) -> None:
    """A backlog that is there before the workers of one group continue."""
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(bench.start_worker()) for _ in range(count)]
        await asyncio.sleep(JOIN_SECONDS)
        records = await bench.create_orders(orders)
        for worker, core in zip(workers, list_cores(), strict=False):
            pin(worker.pid, [core])
            worker.send(signal.SIGSTOP)
        await bench.publish(records)
        begin = await bench.connection.fetchval(consuming.LAST_POSITION)
        async with costs(bench.context, name_rate(WORKERS, count), workers, samples) as done:
            for worker in workers:
                worker.send(signal.SIGCONT)
            began_at = time.perf_counter()
            async with servers.bounded(consuming.WORK_SECONDS_MAX, consuming.WORK):
                while await bench.connection.fetchval(consuming.EVENTS_SINCE, begin) < orders:  # noqa: ASYNC110
                    await asyncio.sleep(consuming.LOOK_EVERY_SECONDS)
            done |= {"units": orders, "seconds": time.perf_counter() - began_at}
        for worker in workers:
            worker.demand_alive()
            await worker.stop()


async def measure_apis(context: StackContext, seconds: int, count: int, samples: Samples) -> None:
    """A client for each API; they run on any core."""
    async with AsyncExitStack() as stack:
        api = ["-m", "orders_svc", "api"]
        apis = [
            await stack.enter_async_context(placing.serve(context, api, {})) for _ in range(count)
        ]
        for each, core in zip(apis, list_cores(), strict=False):
            pin(each.running.pid, [core])
        if not (context.folder / shop.FILE).exists():
            await placing.open_shop(context, apis[0].address)
        running = [each.running for each in apis]
        async with costs(context, name_rate(APIS, count), running, samples) as done:
            found = await asyncio.gather(
                *(place_orders(context, each.address, seconds) for each in apis)
            )
            done |= {"units": sum(each["answered"] for each in found), "seconds": seconds}


async def place_orders(context: StackContext, address: str, seconds: int) -> Mapping[str, float]:
    arguments = [
        *placing.script_arguments("closed_loop"),
        *("--shop", str(context.folder / shop.FILE), "--address", address),
        *("--connections", str(CONNECTIONS), "--seconds", str(seconds)),
    ]
    async with servers.python(context, arguments, {}) as client:
        await client.wait_until_finished(seconds + CLIENT_SECONDS_MORE_MAX)
        found: Mapping[str, float] = json.loads(client.words)
        return found


async def measure_relay(context: StackContext, rows: int, samples: Samples) -> None:
    """One alone: a second one waits for the lease of the first."""

    @asynccontextmanager
    async def start(
        context: StackContext, environment: Mapping[str, str]
    ) -> AsyncIterator[Running]:
        async with servers.relay(context, environment) as relay:
            pin(relay.pid, list_cores()[:1])
            yield relay

    drain = await draining.measure_drain(context, start, rows)
    samples[RELAY].append(drain.rows_per_second)
    milliseconds = drain.cpu_seconds_per_million * MILLISECONDS / draining.MILLION
    samples[name_cpu(RELAY, "own")].append(milliseconds)


def as_series(samples: Samples) -> list[Series]:
    """What two of a process do is compared with what one does."""
    found: list[Series] = []
    for what in (WORKERS, APIS):
        for kind in ("", "own", *SERVERS):
            rates = [name_rate(what, count) for count in COUNTS]
            one, two = (name_cpu(each, kind) if kind else each for each in rates)
            unit = "ms" if kind else "1/s"
            limit = series(samples, one, unit)
            is_idle = not all(limit.rounds)  # an API uses no broker
            found += [limit, series(samples, two, unit, limit=None if is_idle else limit)]
    relay = name_cpu(RELAY, "own")
    return [*found, series(samples, RELAY, "1/s"), series(samples, relay, "ms")]


PART = Part(
    name="scaling",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
