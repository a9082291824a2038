"""confirming: from the instant at which an order is due to its confirmation, on the whole stack."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from benchmarks import servers
from benchmarks.arrivals import percentiles
from benchmarks.delivery import shop
from benchmarks.delivery.hops import HOPS, compute_batch_sizes, compute_hops
from benchmarks.delivery.ordering import REFUSED, Ordered
from benchmarks.delivery.shop import Shop
from benchmarks.delivery.sizes import Size
from benchmarks.goals import at_most
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from fetching.errors import Failure
from local_stack import supervision
from local_stack.hometown import HOMETOWN
from local_stack.jaeger import JAEGER
from local_stack.stack_spec import StackContext
from shared.runtime.progress import tell_in_place

USERS = 200
ITEMS = 20
RATE = 50
"""Orders per second whose latency is taken."""
CONFIRMED_SHARE_MIN = 0.95
"""Of the orders due in a step, by its end: otherwise a backlog grows."""
LATE_MILLISECONDS_MAX = 2_000
"""The 99th percentile of a step's last third."""
CLIENT_SECONDS_MORE_MAX = 120
"""An overdue order is rejected within 30 s, and answered within 30 s more."""
MILLISECONDS = 1_000

PLACED = "placed"
CONFIRMED = "confirmed"
RANKS = ("p50", "p99")
GOALS = {"p50": at_most(150), "p99": at_most(1_000)}
SUSTAINED = "highest rate without a growing backlog"
CLIENT = "client"
CPU_OF = "CPU of "
BATCH_OF = "batch of "
WITHOUT_JAEGER = replace(
    HOMETOWN, processes=tuple(each for each in HOMETOWN.processes if each is not JAEGER)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Some seconds of orders at one rate.

    `cpu` is what each process used, in ms per order, and `batch_sizes` are the decisions in one
    transaction of each worker: the larger, the cheaper is an order.
    """

    rate: int
    seconds: int
    began_at: float
    orders: Sequence[Ordered]
    cpu: dict[str, float]
    batch_sizes: dict[str, float]

    @property
    def refused(self) -> int:
        return sum(each.status == REFUSED for each in self.orders)

    @property
    def is_sustained(self) -> bool:
        """Whether all orders were placed at the rate and confirmed as fast."""
        if self.refused:
            return False
        ends_at, due = self.began_at + self.seconds, self.rate * self.seconds
        in_time = [
            each for each in self.orders if each.status == CONFIRMED and each.decided_at <= ends_at
        ]
        begin = self.began_at + self.seconds * 2 / 3
        late = [
            compute_milliseconds_to_decision(each) for each in self.orders if each.due_at >= begin
        ]
        if len(in_time) < CONFIRMED_SHARE_MIN * due or len(late) < 2:
            return False
        return percentiles(late)["p99"] <= LATE_MILLISECONDS_MAX


def compute_milliseconds_to_decision(order: Ordered) -> float:
    return (order.decided_at - order.due_at) * MILLISECONDS


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    await open_shop(context, USERS)
    tell_in_place("confirming: warming up")
    await order(context, RATE, size.order_warm_up_seconds)
    for number in range(1, size.rounds + 1):
        tell_in_place(f"confirming: round {number} of {size.rounds}, {RATE} orders a second")
        step = await order(context, RATE, size.order_seconds)
        record_latency(step, samples)
        for name, value in (await compute_hops(context, step.orders)).items():
            samples[name].append(value)
        tell_in_place(f"confirming: round {number} of {size.rounds}, more and more orders a second")
        record_highest(await climb(context, size), samples)
    return as_series(samples)


async def open_shop(context: StackContext, count: int) -> None:
    """Register so many users, and list items."""
    token = shop.create_token(context.folder)
    items = await shop.list_items(context.address("orders-api"), token, ITEMS)
    users = await shop.register_users(context.address("users-api"), token, count)
    Shop(token=token, users=users, items=items).save(context.folder / shop.FILE)


async def climb(context: StackContext, size: Size) -> tuple[int, Step]:
    """The highest sustained rate and its step; 0 and the first step if none was sustained."""
    highest: Step | None = None
    for rate in size.order_rates:
        step = await order(context, rate, size.order_step_seconds)
        if not step.is_sustained:
            return (highest.rate, highest) if highest else (0, step)
        highest = step
    assert highest is not None
    return highest.rate, highest


async def order(context: StackContext, rate: int, seconds: int) -> Step:
    arguments = [
        str(Path(__file__).with_name("ordering.py")),
        *("--shop", str(context.folder / shop.FILE)),
        *("--address", context.address("orders-api")),
        *("--rate", str(rate)),
        *("--seconds", str(seconds)),
    ]
    before = sum_cpu_seconds(context)
    async with servers.python(context, arguments, {}) as client:
        await client.wait_until_finished(seconds + CLIENT_SECONDS_MORE_MAX)
        found = json.loads(client.words)
    after = sum_cpu_seconds(context)
    used = {name: after[name] - before[name] for name in before} | {CLIENT: found["own_cpu"]}
    count = len(found["orders"])
    return Step(
        rate=rate,
        seconds=seconds,
        began_at=found["began_at"],
        orders=[Ordered(*each) for each in found["orders"]],
        cpu={name: each * MILLISECONDS / count for name, each in used.items()},
        batch_sizes=await compute_batch_sizes(context, found["began_at"]),
    )


def sum_cpu_seconds(context: StackContext) -> dict[str, float]:
    """Seconds used so far by each process of the stack, including its child processes."""
    programs = supervision.programs(context.folder) or {}
    return {
        name: sum(read_cpu_seconds(each.pid)) for name, each in programs.items() if each.is_alive
    }


def read_cpu_seconds(pid: int) -> Iterator[float]:
    """Seconds of a process and of each running process below it."""
    root = psutil.Process(pid)
    for process in (root, *root.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        yield float(times.user + times.system)


def compute_confirmed(step: Step) -> dict[str, float]:
    """Milliseconds until an order is confirmed, by rank.

    Raises:
        Failure: an order was not confirmed, so it has no latency.
    """
    others = [each.status for each in step.orders if each.status != CONFIRMED]
    if others:
        refused = f", {step.refused} of them were refused" if step.refused else ""
        raise Failure(f"{len(others)} of {len(step.orders)} orders were not confirmed{refused}")
    return percentiles([compute_milliseconds_to_decision(each) for each in step.orders])


def record_latency(step: Step, samples: Samples) -> None:
    """Raises Failure when an order was not confirmed."""
    confirmed = compute_confirmed(step)
    placed = percentiles([(each.placed_at - each.due_at) * MILLISECONDS for each in step.orders])
    for rank in RANKS:
        samples[f"{PLACED}, {rank}"].append(placed[rank])
        samples[f"{CONFIRMED}, {rank}"].append(confirmed[rank])


def record_highest(found: tuple[int, Step], samples: Samples) -> None:
    rate, step = found
    samples[SUSTAINED].append(rate)
    for name, milliseconds in step.cpu.items():
        samples[f"{CPU_OF}{name}, per order at that rate"].append(milliseconds)
    of_stack = sum(each for name, each in step.cpu.items() if name != CLIENT)
    samples[f"{CPU_OF}the whole stack, per order at that rate"].append(of_stack)
    for worker, orders in step.batch_sizes.items():
        samples[f"{BATCH_OF}{worker}, at that rate"].append(orders)


def as_series(samples: Samples) -> list[Series]:
    found = []
    for rank in RANKS:
        placed = series(samples, f"{PLACED}, {rank}", "ms")
        goal = GOALS[rank]
        found += [placed, series(samples, f"{CONFIRMED}, {rank}", "ms", limit=placed, goal=goal)]
    found += [series(samples, name, "ms") for name in HOPS]
    found.append(series(samples, SUSTAINED, "1/s"))
    found += [series(samples, name, "ms") for name in samples if name.startswith(CPU_OF)]
    return found + [series(samples, n, "orders") for n in samples if n.startswith(BATCH_OF)]


PART = Part(name="confirming", summary=__doc__ or "", spec=WITHOUT_JAEGER, measure=measure)
