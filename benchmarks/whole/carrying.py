"""whole: what the whole stack carries end to end, with Spark and traces of one order of ten."""

from collections.abc import Mapping

from benchmarks import servers
from benchmarks.arrivals import percentiles
from benchmarks.delivery import shop
from benchmarks.delivery.shop import Shop
from benchmarks.delivery.sizes import Size
from benchmarks.goals import Goal, at_least, at_most, ratio_at_least
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from benchmarks.whole import differences, history, mixed, order_to_row, stack
from benchmarks.whole.hops import compute_hops
from benchmarks.whole.ordering import CONFIRMED
from benchmarks.whole.step import MILLISECONDS, Step, compute_milliseconds, order
from fetching.errors import Failure
from local_stack.stack_spec import StackContext
from shared.runtime.progress import tell_in_place

ITEMS = 20
PLACED = "placed"
RANKS = ("p50", "p99")
SUSTAINED = "highest rate without a growing backlog"
THAT_RATE = "that rate"
CPU_OF = "CPU of "
STACK = "the whole stack"
BATCH_OF = "batch of "
TO_ROW = "event of a confirmed order to the row of its hour"
MIXED_RATE = "mixed load, actions answered"
MIXED_P99 = "mixed load, p99"
DIFFERENCES = "differences at the end"


def at(rate: int) -> str:
    return f"{rate:,} orders per second"


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    await stack.require_jaeger(context)
    await history.write(context, await open_shop(context, size.order_users), size.order_past_events)
    tell_in_place("whole: warming up")
    await mixed.run(context, size.mixed_warm_up_seconds)
    # Before all orders of now: it needs hours of the past that are not final yet.
    for number in range(1, size.order_rounds + 1):
        tell_in_place(f"whole: round {number} of {size.order_rounds}, mixed load")
        record_mixed(await mixed.run(context, size.mixed_seconds), samples)
    await order(context, size.order_rate, size.order_warm_up_seconds)
    for number in range(1, size.order_rounds + 1):
        tell_in_place(f"whole: round {number} of {size.order_rounds}, {at(size.order_rate)}")
        calm = await measure_rate(context, size.order_rate, size.order_seconds, samples, "")
        for name, value in (await compute_hops(context, calm.confirmed)).items():
            samples[name].append(value)
        tell_in_place(f"whole: round {number} of {size.order_rounds}, {at(size.busy_rate)}")
        busy_rate = f", at {at(size.busy_rate)}"
        busy = await measure_rate(context, size.busy_rate, size.busy_seconds, samples, busy_rate)
        tell_in_place(f"whole: round {number} of {size.order_rounds}, the highest rate")
        highest = await climb(context, busy, size)
        record_cost(highest, THAT_RATE, samples)
        samples[SUSTAINED].append(highest.rate)
        tell_in_place(f"whole: round {number} of {size.order_rounds}, {at(size.overload_rate)}")
        record_overload(await settled(context, size.overload_rate, size.overload_seconds), samples)
    tell_in_place("whole: comparing all services")
    samples[DIFFERENCES].append(await differences.count(context))
    return as_series(samples, size)


async def open_shop(context: StackContext, count: int) -> Shop:
    """Save a shop with so many users where clients find it."""
    token = shop.create_token(context.folder)
    items = await shop.list_items(context.address("orders-api"), token, ITEMS)
    users = await shop.register_users(context.address("users-api"), token, count)
    opened = Shop(token=token, users=users, items=items)
    opened.save(context.folder / shop.FILE)
    return opened


async def settled(context: StackContext, rate: int, seconds: int) -> Step:
    """A step, once its orders are in their hours as well."""
    step = await order(context, rate, seconds)
    ends = await servers.ends(context, order_to_row.TOPIC)
    await order_to_row.wait_until_counted(context, ends, step.began_at)
    return step


async def measure_rate(
    context: StackContext, rate: int, seconds: int, samples: Samples, suffix: str
) -> Step:
    """A step with the time of its orders to their hours; `suffix` ends the names of its times."""
    begin = await servers.ends(context, order_to_row.TOPIC)
    step = await order(context, rate, seconds)
    to_row = await order_to_row.compute_milliseconds(context, begin, step.began_at)
    record_latency(step, samples, suffix)
    for rank in RANKS:
        samples[f"{TO_ROW}, {rank}{suffix}"].append(percentiles(to_row)[rank])
    record_cost(step, at(rate), samples)
    return step


async def climb(context: StackContext, known: Step, size: Size) -> Step:
    """The step with the highest sustained rate, looked for from a known one up or down.

    Raises:
        Failure: none is sustained.
    """
    if not known.is_sustained:
        for rate in range(known.rate - size.climb_by, 0, -size.climb_by):
            step = await settled(context, rate, size.climb_seconds)
            if step.is_sustained:
                return step
        raise Failure("orders are not confirmed as fast as they are placed, at any rate")
    highest = known
    while highest.rate < size.climb_rate_max:
        step = await settled(context, highest.rate + size.climb_by, size.climb_seconds)
        if not step.is_sustained:
            break
        highest = step
    return highest


def record_mixed(found: Mapping[str, float], samples: Samples) -> None:
    samples[MIXED_RATE].append(found["rate answered"])
    samples[MIXED_P99].append(found["all: p99"])


def record_latency(step: Step, samples: Samples, suffix: str) -> None:
    """Raises Failure when hardly an order was confirmed."""
    if len(step.confirmed) < 2:
        raise Failure(f"of {len(step.orders)} orders {len(step.confirmed)} were confirmed")
    placed = percentiles([(each.placed_at - each.due_at) * MILLISECONDS for each in step.confirmed])
    confirmed = percentiles([compute_milliseconds(each) for each in step.confirmed])
    for rank in RANKS:
        samples[f"{PLACED}, {rank}{suffix}"].append(placed[rank])
        samples[f"{CONFIRMED}, {rank}{suffix}"].append(confirmed[rank])
    samples[name_share(step.rate)].append(step.confirmed_share)
    samples[name_refused(step.rate)].append(step.refused)
    samples[name_timed_out(step.rate)].append(step.timed_out)


def record_cost(step: Step, rate: str, samples: Samples) -> None:
    for process, milliseconds in {**step.cpu, STACK: step.cpu_of_stack}.items():
        samples[f"{CPU_OF}{process}, per order at {rate}"].append(milliseconds)
    for worker, orders in step.batch_sizes.items():
        samples[f"{BATCH_OF}{worker}, at {rate}"].append(orders)


def record_overload(step: Step, samples: Samples) -> None:
    samples[name_offered(step.rate)].append(len(step.orders) / step.seconds)
    samples[name_goodput(step.rate)].append(step.goodput)
    samples[name_refused(step.rate)].append(step.refused)
    samples[name_timed_out(step.rate)].append(step.timed_out)


def name_share(rate: int) -> str:
    return f"share confirmed in time, at {at(rate)}"


def name_refused(rate: int) -> str:
    return f"refused, at {at(rate)}"


def name_timed_out(rate: int) -> str:
    return f"timed out, at {at(rate)}"


def name_offered(rate: int) -> str:
    return f"offered, at {at(rate)}"


def name_goodput(rate: int) -> str:
    return f"confirmed while offered, at {at(rate)}"


def create_goals(size: Size) -> dict[str, Goal]:
    """What issue and documentation promise, by the name of the figure."""
    calm, busy = at(size.order_rate), at(size.busy_rate)
    return {
        MIXED_RATE: at_least(mixed.RATE * mixed.KEPT_SHARE_MIN),
        MIXED_P99: at_most(500),
        f"{CONFIRMED}, p50": at_most(150),
        f"{CONFIRMED}, p99": at_most(1_000),
        f"{TO_ROW}, p99": at_most(2_000),
        f"{CPU_OF}{STACK}, per order at {calm}": at_most(25),
        f"{CONFIRMED}, p99, at {busy}": at_most(1_000),
        f"{TO_ROW}, p99, at {busy}": at_most(6_000),
        f"{CPU_OF}{STACK}, per order at {busy}": at_most(6.5),
        name_share(size.busy_rate): at_least(0.95),
        name_refused(size.busy_rate): at_most(0),
        name_timed_out(size.busy_rate): at_most(0),
        SUSTAINED: at_least(size.busy_rate),
        name_goodput(size.overload_rate): ratio_at_least(0.9),
        name_timed_out(size.overload_rate): at_most(0),
        DIFFERENCES: at_most(0),
    }


def find_unit(name: str) -> str:
    if name.startswith(BATCH_OF):
        return "orders"
    if name.startswith(("refused", "timed out", "differences")):
        return "1"
    if name.startswith("share"):
        return "of those due"
    return "1/s" if name in (SUSTAINED, MIXED_RATE) or "offered" in name else "ms"


def as_series(samples: Samples, size: Size) -> list[Series]:
    """Everything that was sampled, step by step; goodput is compared with the highest rate."""
    goals, sustained = create_goals(size), series(samples, SUSTAINED, "1/s")
    return [
        series(
            samples,
            name,
            find_unit(name),
            limit=sustained if name == name_goodput(size.overload_rate) else None,
            goal=goals.get(name),
        )
        for name in samples
    ]


PART = Part(name="whole", summary=__doc__ or "", spec=stack.MEASURED, measure=measure)
