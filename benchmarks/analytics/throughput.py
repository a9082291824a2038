"""throughput: orders per second from Kafka to the cells, compared with other engines."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from benchmarks.analytics import counting, process_tree, shop_history, true_cells
from benchmarks.analytics.counting import Job, SeenBatch
from benchmarks.analytics.job_sizes import Size
from benchmarks.analytics.peers import peer as peers
from benchmarks.analytics.peers import programs
from benchmarks.analytics.peers.peer import Mark, Peer, PeerRun
from benchmarks.analytics.shop_history import Totals
from benchmarks.analytics.true_cells import Cells
from benchmarks.goals import ratio_at_least, ratio_at_most
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.messaging import topics
from shared.runtime.brokers import Brokers
from shared.runtime.progress import tell_in_place

OURS = "job"
PEERS = {each.name: each for each in programs.PEERS}
NAMES = (OURS, *PEERS)

OVERALL = "from the start of the process to the last commit"
STEADY = "without the first two batches, and as many orders"
CPU = "CPU per order"
STEADY_CPU = "CPU per order, without the first two batches"
MEMORY = "largest resident memory"
FIRST = "first cells, after the start of the process"
TENTH = "a full batch, around the tenth"
LAST = "a full batch, the last ones"
KAFKA_CPU = "CPU of kafka per order"
POSTGRES_CPU = "CPU of postgres per order"
WRONG = "cells with a wrong value"
MISPLACED = "purchases missing in a cell, or too many"

MEBIBYTE = 1 << 20
MICROSECONDS = 1_000_000
TENTH_BATCH = 9
BATCHES_AROUND = 3
"""The median of this number of batches: a single one can be disturbed."""


async def measure(context: StackContext, size: Size) -> list[Series]:
    """Measure the job and its peers; each round begins with another one."""
    samples = Samples(list)
    await topics.create(Brokers(context.address("kafka")))
    tell_in_place(f"throughput: publishing {size.orders:,} orders")
    history = await shop_history.fill(context.address("kafka"), size)
    totals, cells = history.totals, history.cells()
    del history  # which has every order
    for number in range(1, size.rounds + 1):
        for name in (*NAMES[number - 1 :], *NAMES[: number - 1]):
            tell_in_place(f"throughput: round {number} of {size.rounds}, {name}")
            if name == OURS:
                await measure_job(context, size, totals, cells, samples)
            else:
                await measure_peer(context, size, PEERS[name], cells, samples)
    for number, part in enumerate(size.parts_of_backlog, start=1):
        tell_in_place(f"throughput: batches of {part.per_batch:,}, {number}")
        async with counting.run_job(
            context, counting.get_full_speed_settings(part.per_batch)
        ) as job:
            batches = await job.batches(counting.has_counted(part.orders))
        take_job(f"job, {part.per_batch:,} per batch", job, batches, samples)
    return as_series(samples, size)


async def measure_job(
    context: StackContext, size: Size, totals: Totals, cells: Cells, samples: Samples
) -> None:
    """Count all orders. Raises Failure if a cell is wrong."""
    before = process_tree.servers_cpu_seconds(context)
    async with counting.run_job(context, counting.get_full_speed_settings(size.per_batch)) as job:
        batches = await job.batches(counting.has_counted(size.orders))
        take_servers(OURS, context, before, size.orders, samples)
        await job.demand_totals(totals)
        await job.demand_local_cells(cells)
    take_job(OURS, job, batches, samples)


async def measure_peer(
    context: StackContext, size: Size, peer: Peer, cells: Cells, samples: Samples
) -> None:
    before = process_tree.servers_cpu_seconds(context)
    run = await peers.run(peer, context, size.orders)
    take_servers(peer.name, context, before, size.orders, samples)
    take_peer(peer.name, run, size.per_batch * counting.WARMING_BATCHES, samples)
    samples[get_name(peer.name, WRONG)].append(true_cells.count_wrong(run.cells, cells))
    samples[get_name(peer.name, MISPLACED)].append(true_cells.count_misplaced(run.cells, cells))


def take_job(name: str, job: Job, batches: Sequence[SeenBatch], samples: Samples) -> None:
    begin, *measured = counting.select_steady(batches)
    orders = sum(batch.counted for batch in measured)
    all_orders = sum(batch.counted for batch in batches)
    seconds = seconds_of_full(batches)
    around = slice(min(TENTH_BATCH, len(seconds) - 1), TENTH_BATCH + BATCHES_AROUND)
    found = {
        OVERALL: all_orders / (batches[-1].seen_at - job.started_at),
        STEADY: orders / (measured[-1].seen_at - begin.seen_at),
        CPU: batches[-1].cpu_seconds / all_orders * MICROSECONDS,
        STEADY_CPU: (measured[-1].cpu_seconds - begin.cpu_seconds) / orders * MICROSECONDS,
        MEMORY: max(batch.resident_bytes for batch in batches) / MEBIBYTE,
        FIRST: batches[0].seen_at - job.started_at,
        TENTH: median(seconds[around]),
        LAST: median(seconds[-BATCHES_AROUND:]),
    }
    for what, value in found.items():
        samples[get_name(name, what)].append(value)


def seconds_of_full(batches: Sequence[SeenBatch]) -> list[float]:
    """Seconds between each full batch and the one before it."""
    largest = max(batch.counted for batch in batches)
    return [
        batch.seen_at - before.seen_at
        for before, batch in pairwise(batches)
        if batch.counted >= counting.FULL_SHARE_MIN * largest
    ]


def take_peer(name: str, run: PeerRun, skipped: int, samples: Samples) -> None:
    """The clock of its steady rate starts after as many orders as the job's first batches have."""
    marks = [Mark(at=run.started_at, joined=0, cpu=0), *run.marks]
    last = marks[-1]
    begin = [mark for mark in marks if mark.joined <= min(skipped, last.joined // 2)][-1]
    found = {
        OVERALL: last.joined / (last.at - run.started_at),
        STEADY: (last.joined - begin.joined) / (last.at - begin.at),
        CPU: last.cpu / last.joined * MICROSECONDS,
        STEADY_CPU: (last.cpu - begin.cpu) / (last.joined - begin.joined) * MICROSECONDS,
        MEMORY: run.resident_bytes_max / MEBIBYTE,
        FIRST: run.first_at - run.started_at,
    }
    for what, value in found.items():
        samples[get_name(name, what)].append(value)


def take_servers(
    name: str, context: StackContext, before: dict[str, float], orders: int, samples: Samples
) -> None:
    """CPU time of the servers for this run, in addition to the compared processes."""
    after = process_tree.servers_cpu_seconds(context)
    for server, what in (("kafka", KAFKA_CPU), ("postgres", POSTGRES_CPU)):
        per_order = (after[server] - before[server]) / orders * MICROSECONDS
        samples[get_name(name, what)].append(per_order)


def get_name(name: str, what: str) -> str:
    return f"{name}: {what}"


def as_series(samples: Samples, size: Size) -> list[Series]:
    found = []
    for what, unit, goal in (
        (OVERALL, "1/s", None),
        (STEADY, "1/s", ratio_at_least(1)),
        (CPU, "µs", None),
        (STEADY_CPU, "µs", None),
        (MEMORY, "MiB", None),
        (FIRST, "s", None),
        (KAFKA_CPU, "µs", None),
    ):
        by_peer = [series(samples, get_name(name, what), unit) for name in PEERS]
        streams = by_peer[0]
        found += [*by_peer, series(samples, get_name(OURS, what), unit, limit=streams, goal=goal)]
    # The job has none: it is not measured then.
    for name in PEERS:
        found.append(series(samples, get_name(name, WRONG), "cells"))
        found.append(series(samples, get_name(name, MISPLACED), "purchases"))
    # The peers write to Kafka alone, so there is nothing to compare this with.
    found.append(series(samples, get_name(OURS, POSTGRES_CPU), "µs"))
    for name in (OURS, *(f"job, {part.per_batch:,} per batch" for part in size.parts_of_backlog)):
        found += flatness(samples, name)
    for part in size.parts_of_backlog:
        name = f"job, {part.per_batch:,} per batch"
        found += [
            series(samples, get_name(name, STEADY), "1/s"),
            series(samples, get_name(name, STEADY_CPU), "µs"),
        ]
    return found


def flatness(samples: Samples, name: str) -> list[Series]:
    tenth = series(samples, get_name(name, TENTH), "s")
    last = series(samples, get_name(name, LAST), "s", limit=tenth, goal=ratio_at_most(1.1))
    return [tenth, last]


PART = Part(
    name="throughput",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
