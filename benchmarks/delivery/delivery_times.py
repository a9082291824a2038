"""latency: from the call of an append to the broker's log and to a consumer, at given rates."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import asyncpg

from benchmarks import arrivals, pgbench, rows, servers
from benchmarks.arrivals import RANKS, Arrival, Arrivals, percentiles
from benchmarks.delivery.sizes import Size
from benchmarks.goals import Goal, at_most, ratio_at_most
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from fetching.errors import Failure
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.runtime.progress import tell_in_place

CLIENTS = 16
WRITER_RATE = 1_000
"""Transactions per second while another transaction stays open."""
CLIENT_SECONDS_MORE_MAX = 60

ARRIVALS_MIN = 10

TO_LOG = "to the broker's log"
TO_CONSUMER = "to the consumer"
POINTS = tuple(f"{where}, {rank}" for where in (TO_LOG, TO_CONSUMER) for rank in RANKS)
RELAY = "relay"
DIRECT = "direct"
WRITER = f"{WRITER_RATE}/s beside an open transaction"

NO_GOALS: Mapping[str, Goal] = {}
WRITER_GOALS = {f"{TO_CONSUMER}, longest": at_most(100)}
PAIR_GOALS = {
    f"{TO_CONSUMER}, p50": ratio_at_most(1.5),
    f"{TO_CONSUMER}, p99": ratio_at_most(2),
}

CREATE_WRITTEN = "CREATE TABLE IF NOT EXISTS written (number integer)"
WRITE = "INSERT INTO written VALUES (1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One database, one topic, and the settings of the relay between them."""

    context: StackContext
    dsn: str
    topic: str
    environment: dict[str, str]
    arrived: Arrivals

    @property
    def relay_address(self) -> str:
        return f"{self.environment['HTTP_HOST']}:{self.environment['HTTP_PORT']}"


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    for number in range(1, size.rounds + 1):
        for rate in size.rates:
            tell_in_place(f"latency: round {number} of {size.rounds}, {rate} transactions a second")
            await measure_rate(context, size, rate, samples)
        tell_in_place(f"latency: round {number} of {size.rounds}, with an open transaction")
        await measure_with_open_writer(context, size, samples)
        for rate, how in product(size.pair_rates, (RELAY, DIRECT)):
            tell_in_place(f"latency: round {number} of {size.rounds}, {name_pair(rate, how)}")
            await measure_python_client(context, size, rate, how, samples)
    return as_series(samples, size)


@asynccontextmanager
async def open_pipeline(context: StackContext) -> AsyncIterator[Pipeline]:
    """A pipeline that times its records; it has no relay yet."""
    async with (
        servers.database(context, "shared") as dsn,
        servers.topic(context, servers.LOG_APPEND_TIME) as topic,
        servers.tail(context, topic) as consumer,
        arrivals.collect_arrivals(consumer) as arrived,
    ):
        yield Pipeline(
            context=context,
            dsn=dsn,
            topic=topic,
            environment=servers.settings_of_process(context, dsn),
            arrived=arrived,
        )


@asynccontextmanager
async def open_relayed_pipeline(context: StackContext) -> AsyncIterator[Pipeline]:
    """A pipeline with an active relay."""
    async with (
        open_pipeline(context) as found,
        servers.relay(context, found.environment) as relay,
        servers.connected(found.dsn) as connection,
    ):
        await servers.wait_until_active(relay, connection)
        yield found
        relay.demand_alive()


@asynccontextmanager
async def notify_for_pgbench(found: Pipeline) -> AsyncIterator[None]:
    """pgbench cannot notify a relay, so another process does it for all of its commits."""
    script = Path(__file__).with_name("notifying.py")
    host, port = found.environment["HTTP_HOST"], found.environment["HTTP_PORT"]
    async with servers.python(found.context, [str(script), host, port], {}):
        yield


async def measure_rate(context: StackContext, size: Size, rate: int, samples: Samples) -> None:
    """pgbench appends at the rate, and another process notifies the relay."""
    async with open_relayed_pipeline(context) as found, notify_for_pgbench(found):
        outcome = await apply_load(found, rate, size.warm_up_seconds + size.latency_seconds)
    record(samples, f"{rate}/s", select_after_warm_up(found, size))
    samples[name_reached_rate(f"{rate}/s")].append(outcome.per_second)
    if outcome.lag_milliseconds_max is not None:
        samples[name_latest_begin(rate)].append(outcome.lag_milliseconds_max)


async def apply_load(found: Pipeline, rate: int, seconds: int) -> pgbench.Outcome:
    """Returns when everything that was appended has arrived."""
    script = rows.append(found.topic, value=rows.VALUE_NOW)
    outcome = await pgbench.run(found.dsn, script, seconds=seconds, clients=CLIENTS, rate=rate)
    await found.arrived.wait_until_quiet()
    return outcome


async def measure_with_open_writer(context: StackContext, size: Size, samples: Samples) -> None:
    """Counts only what was appended while the other transaction was open."""
    async with (
        open_relayed_pipeline(context) as found,
        notify_for_pgbench(found),
        servers.connected(found.dsn) as connection,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(
            apply_load(found, WRITER_RATE, size.warm_up_seconds + size.writer_seconds + 1)
        )
        await asyncio.sleep(size.warm_up_seconds)
        began_at = time.time()
        await stay_open(connection, size.writer_seconds)
        ended_at = time.time()
    record(samples, WRITER, found.arrived.called_between(began_at, ended_at))


async def stay_open(connection: asyncpg.Connection, seconds: int) -> None:
    """A transaction that writes at its start and then stays open."""
    await connection.execute(CREATE_WRITTEN)
    async with connection.transaction():
        await connection.execute(WRITE)
        await asyncio.sleep(seconds)


async def measure_python_client(
    context: StackContext, size: Size, rate: int, how: str, samples: Samples
) -> None:
    """The same client appends with the relay and directly, so that nothing else differs."""
    seconds = size.warm_up_seconds + size.latency_seconds
    opened = open_relayed_pipeline(context) if how == RELAY else open_pipeline(context)
    async with opened as found:
        command = create_command(found, rate, how, seconds)
        async with servers.python(context, command, found.environment) as client:
            await client.wait_until_finished(seconds + CLIENT_SECONDS_MORE_MAX)
        await found.arrived.wait_until_quiet()
    counted = select_after_warm_up(found, size)
    record(samples, name_pair(rate, how), counted)
    samples[name_reached_rate(name_pair(rate, how))].append(len(counted) / size.latency_seconds)


def create_command(found: Pipeline, rate: int, how: str, seconds: int) -> list[str]:
    return [
        str(Path(__file__).with_name("open_loop.py")),
        *(how, "--topic", found.topic, "--rate", str(rate), "--seconds", str(seconds)),
        *("--relay-address", found.relay_address),
    ]


def select_after_warm_up(found: Pipeline, size: Size) -> list[Arrival]:
    """What was appended from warm_up_seconds after the first append on."""
    begin = min((each.called_at for each in found.arrived.each), default=0.0)
    return found.arrived.called_between(begin + size.warm_up_seconds, float("inf"))


def record(samples: Samples, what: str, counted: Sequence[Arrival]) -> None:
    """Raises Failure if next to nothing arrived."""
    if len(counted) < ARRIVALS_MIN:
        raise Failure(f"only {len(counted)} records arrived of those that were appended at {what}")
    for where, milliseconds in (
        (TO_LOG, [each.to_log_milliseconds for each in counted]),
        (TO_CONSUMER, [each.to_consumer_milliseconds for each in counted]),
    ):
        for rank, value in percentiles(milliseconds).items():
            samples[f"{what} {where}, {rank}"].append(value)


def as_series(samples: Samples, size: Size) -> list[Series]:
    found = []
    for rate in size.rates:
        found += times_as_series(samples, f"{rate}/s")
        found.append(series(samples, name_reached_rate(f"{rate}/s"), "1/s"))
        found.append(series(samples, name_latest_begin(rate), "ms"))
    found += times_as_series(samples, WRITER, WRITER_GOALS)
    for rate in size.pair_rates:
        found += pair_as_series(samples, rate)
    return found


def pair_as_series(samples: Samples, rate: int) -> list[Series]:
    direct = times_as_series(samples, name_pair(rate, DIRECT))
    relay = times_as_series(samples, name_pair(rate, RELAY), PAIR_GOALS)
    return [
        *direct,
        series(samples, name_reached_rate(name_pair(rate, DIRECT)), "1/s"),
        *(replace(each, limit=limit) for each, limit in zip(relay, direct, strict=True)),
        series(samples, name_reached_rate(name_pair(rate, RELAY)), "1/s"),
    ]


def times_as_series(
    samples: Samples, what: str, goals: Mapping[str, Goal] = NO_GOALS
) -> list[Series]:
    return [series(samples, f"{what} {point}", "ms", goal=goals.get(point)) for point in POINTS]


def name_reached_rate(what: str) -> str:
    return f"{what}, rate that was reached"


def name_latest_begin(rate: int) -> str:
    return f"{rate}/s, latest begin of an append after it was due"


def name_pair(rate: int, how: str) -> str:
    return f"{rate}/s, Python client, {how}"


PART = Part(
    name="latency",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
