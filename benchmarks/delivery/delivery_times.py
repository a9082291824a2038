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
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from fetching.errors import Failure
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.runtime.progress import tell_in_place

CLIENTS = 16
WRITER_RATE = 1_000
"""Transactions per second beside a transaction that stays open."""
CLIENT_SECONDS_MORE_MAX = 60

ARRIVALS_MIN = 10

TO_LOG = "to the broker's log"
TO_CONSUMER = "to the consumer"
POINTS = tuple(f"{where}, {rank}" for where in (TO_LOG, TO_CONSUMER) for rank in RANKS)
RELAY = "relay"
DIRECT = "direct"
WRITER = f"{WRITER_RATE}/s beside an open transaction"

NO_GOALS: Mapping[str, str] = {}
WRITER_GOALS = {f"{TO_CONSUMER}, longest": "below 100"}
PAIR_GOALS = {f"{TO_CONSUMER}, p50": "at most 1.5", f"{TO_CONSUMER}, p99": "at most 2"}

CREATE_WRITTEN = "CREATE TABLE IF NOT EXISTS written (number integer)"
WRITE = "INSERT INTO written VALUES (1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One database, one topic, and who brings records from the one to the other."""

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
            await one_rate(context, size, rate, samples)
        tell_in_place(f"latency: round {number} of {size.rounds}, beside an open transaction")
        await beside_open_writer(context, size, samples)
        for rate, how in product(size.pair_rates, (RELAY, DIRECT)):
            tell_in_place(f"latency: round {number} of {size.rounds}, {pair(rate, how)}")
            await python_client(context, size, rate, how, samples)
    return as_series(samples, size)


@asynccontextmanager
async def way(context: StackContext) -> AsyncIterator[Way]:
    """A way on which records can be timed; without a relay yet."""
    async with (
        servers.database(context, "shared") as dsn,
        servers.topic(context, servers.LOG_APPEND_TIME) as topic,
        servers.tail(context, topic) as consumer,
        arrivals.collecting(consumer) as arrived,
    ):
        yield Way(
            context=context,
            dsn=dsn,
            topic=topic,
            environment=servers.settings_of_process(context, dsn),
            arrived=arrived,
        )


@asynccontextmanager
async def relayed(context: StackContext) -> AsyncIterator[Way]:
    """A way with an active relay."""
    async with (
        way(context) as found,
        servers.relay(context, found.environment) as relay,
        servers.connected(found.dsn) as connection,
    ):
        await servers.until_active(relay, connection)
        yield found
        relay.demand_alive()


@asynccontextmanager
async def notifying(found: Way) -> AsyncIterator[None]:
    """pgbench cannot notify a relay, so another process does it for all of its commits."""
    script = Path(__file__).with_name("notifying.py")
    host, port = found.environment["HTTP_HOST"], found.environment["HTTP_PORT"]
    async with servers.python(found.context, [str(script), host, port], {}):
        yield


async def one_rate(context: StackContext, size: Size, rate: int, samples: Samples) -> None:
    """pgbench appends at the rate, and the notifier notifies."""
    async with relayed(context) as found, notifying(found):
        outcome = await loaded(found, rate, size.warm_up_seconds + size.latency_seconds)
    note(samples, f"{rate}/s", after_warm_up(found, size))
    samples[reached(f"{rate}/s")].append(outcome.per_second)
    if outcome.lag_milliseconds_max is not None:
        samples[begun_late(rate)].append(outcome.lag_milliseconds_max)


async def loaded(found: Way, rate: int, seconds: int) -> pgbench.Outcome:
    """Returns when everything that was appended has arrived."""
    script = rows.append(found.topic, value=rows.VALUE_NOW)
    outcome = await pgbench.run(found.dsn, script, seconds=seconds, clients=CLIENTS, rate=rate)
    await found.arrived.until_quiet()
    return outcome


async def beside_open_writer(context: StackContext, size: Size, samples: Samples) -> None:
    """Only what was appended while the other transaction was open counts."""
    async with (
        relayed(context) as found,
        notifying(found),
        servers.connected(found.dsn) as connection,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(
            loaded(found, WRITER_RATE, size.warm_up_seconds + size.writer_seconds + 1)
        )
        await asyncio.sleep(size.warm_up_seconds)
        began_at = time.time()
        await stay_open(connection, size.writer_seconds)
        ended_at = time.time()
    note(samples, WRITER, found.arrived.called_between(began_at, ended_at))


async def stay_open(connection: asyncpg.Connection, seconds: int) -> None:
    """A transaction that writes at its begin, and then takes its time."""
    await connection.execute(CREATE_WRITTEN)
    async with connection.transaction():
        await connection.execute(WRITE)
        await asyncio.sleep(seconds)


async def python_client(
    context: StackContext, size: Size, rate: int, how: str, samples: Samples
) -> None:
    """The same client appends in both ways, so that only the way differs."""
    seconds = size.warm_up_seconds + size.latency_seconds
    opened = relayed(context) if how == RELAY else way(context)
    async with opened as found:
        command = open_loop(found, rate, how, seconds)
        async with servers.python(context, command, found.environment) as client:
            await client.finished(seconds + CLIENT_SECONDS_MORE_MAX)
        await found.arrived.until_quiet()
    counted = after_warm_up(found, size)
    note(samples, pair(rate, how), counted)
    samples[reached(pair(rate, how))].append(len(counted) / size.latency_seconds)


def open_loop(found: Way, rate: int, how: str, seconds: int) -> list[str]:
    return [
        str(Path(__file__).with_name("open_loop.py")),
        *(how, "--topic", found.topic, "--rate", str(rate), "--seconds", str(seconds)),
        *("--relay-address", found.relay_address),
    ]


def after_warm_up(found: Way, size: Size) -> list[Arrival]:
    """What was appended from warm_up_seconds after the first append on."""
    begin = min((each.called_at for each in found.arrived.each), default=0.0)
    return found.arrived.called_between(begin + size.warm_up_seconds, float("inf"))


def note(samples: Samples, what: str, counted: Sequence[Arrival]) -> None:
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
        found += times(samples, f"{rate}/s")
        found.append(series(samples, reached(f"{rate}/s"), "1/s"))
        found.append(series(samples, begun_late(rate), "ms"))
    found += times(samples, WRITER, WRITER_GOALS)
    for rate in size.pair_rates:
        found += pair_as_series(samples, rate)
    return found


def pair_as_series(samples: Samples, rate: int) -> list[Series]:
    direct = times(samples, pair(rate, DIRECT))
    relay = times(samples, pair(rate, RELAY), PAIR_GOALS)
    return [
        *direct,
        series(samples, reached(pair(rate, DIRECT)), "1/s"),
        *(replace(each, limit=limit) for each, limit in zip(relay, direct, strict=True)),
        series(samples, reached(pair(rate, RELAY)), "1/s"),
    ]


def times(samples: Samples, what: str, goals: Mapping[str, str] = NO_GOALS) -> list[Series]:
    return [series(samples, f"{what} {point}", "ms", goal=goals.get(point, "")) for point in POINTS]


def reached(what: str) -> str:
    return f"{what}, rate that was reached"


def begun_late(rate: int) -> str:
    return f"{rate}/s, latest begin of an append after it was due"


def pair(rate: int, how: str) -> str:
    return f"{rate}/s, Python client, {how}"


PART = Part(
    name="latency",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
