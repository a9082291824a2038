"""failover: how long nothing is delivered after the active relay is killed, or frozen."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

from benchmarks import arrivals, pgbench, rows, servers
from benchmarks.delivery.sizes import Size
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from fetching.errors import Failure
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.outbox.lease import LEASE_SECONDS
from shared.runtime.progress import tell_in_place

RATE = 500
"""Transactions per second throughout."""
CLIENTS = 8
BEFORE_SECONDS = 2
SILENCE_SECONDS_MAX = 60
"""A longer silence is a failure, and no figure."""

SIGNALS: Mapping[str, signal.Signals] = {
    "killed (kill -9)": signal.SIGKILL,
    "frozen (SIGSTOP)": signal.SIGSTOP,
}
LEASE = "lease"


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    for number in range(1, size.rounds + 1):
        samples[LEASE].append(LEASE_SECONDS)
        for what, signal_number in SIGNALS.items():
            tell_in_place(f"failover: round {number} of {size.rounds}, {what}")
            samples[what].append(await measure_silence(context, signal_number))
    lease = series(samples, LEASE, "s")
    return [
        lease,
        *(
            Series(
                name=f"active relay {what}: longest time without a record",
                unit="s",
                rounds=tuple(samples[what]),
                limit=lease,
            )
            for what in SIGNALS
        ),
    ]


async def measure_silence(context: StackContext, signal_number: signal.Signals) -> float:
    """In seconds, from the last record before the signal on."""
    async with (
        servers.database(context, "shared") as dsn,
        servers.topic(context) as topic,
        servers.tail(context, topic) as consumer,
        servers.connected(dsn) as connection,
        arrivals.collect_arrivals(consumer) as arrived,
        servers.relay(context, servers.settings_of_process(context, dsn)) as active,
    ):
        await servers.wait_until_active(active, connection)
        environment = servers.settings_of_process(context, dsn)
        async with servers.relay(context, environment) as standby:
            await servers.wait_until_ready(standby, environment)
            async with apply_load(dsn, topic):
                await asyncio.sleep(BEFORE_SECONDS)
                signalled_at = time.time()
                active.send(signal_number)
                async with servers.bounded(SILENCE_SECONDS_MAX, "the silence"):
                    await arrived.wait_until_called_after(signalled_at)
            standby.demand_alive()
    return find_longest_gap([each.consumed_at for each in arrived.each], signalled_at)


@asynccontextmanager
async def apply_load(dsn: str, topic: str) -> AsyncIterator[None]:
    """Appends at RATE inside the block."""
    load = asyncio.create_task(
        pgbench.run(
            dsn,
            rows.append(topic, value=rows.VALUE_NOW),
            seconds=BEFORE_SECONDS + SILENCE_SECONDS_MAX,
            clients=CLIENTS,
            rate=RATE,
        )
    )
    try:
        yield
    finally:
        load.cancel()
        await asyncio.wait([load])


def find_longest_gap(instants: Sequence[float], begin: float) -> float:
    """The longest time between two records of which the later one came after `begin`.

    Raises:
        Failure: none came before `begin`, or none after it.
    """
    gaps = [later - earlier for earlier, later in pairwise(instants) if later >= begin]
    if not gaps:
        raise Failure("no record was delivered before the active relay failed, or none after it")
    return max(gaps)


PART = Part(
    name="failover",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
