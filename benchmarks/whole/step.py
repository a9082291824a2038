"""Some seconds of orders at one rate, and what they cost."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import process_tree, servers
from benchmarks.arrivals import percentiles
from benchmarks.delivery import shop
from benchmarks.whole import ordering
from benchmarks.whole.hops import compute_batch_sizes
from benchmarks.whole.ordering import CONFIRMED, REFUSED, REJECTED, Ordered
from local_stack.stack_spec import StackContext

CONFIRMED_SHARE_MIN = 0.95
"""Of the orders due in a step, in time: otherwise a backlog grows."""
LATE_MILLISECONDS_MAX = 2_000
"""The 99th percentile of a step's last third."""
CLIENT_SECONDS_MORE_MAX = 120
"""An overdue order is rejected within 30 s, and answered within 30 s more."""
MILLISECONDS = 1_000
CLIENT = "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`cpu_seconds` is what each process used, and `batch_sizes` are the decisions in one
    transaction of each worker: the larger, the cheaper is an order."""

    rate: int
    seconds: int
    began_at: float
    orders: Sequence[Ordered]
    cpu_seconds: dict[str, float]
    batch_sizes: dict[str, float]

    @property
    def refused(self) -> int:
        return self._count(REFUSED)

    @property
    def timed_out(self) -> int:
        """Orders that were rejected: all users have credit enough."""
        return self._count(REJECTED)

    def _count(self, status: str) -> int:
        return sum(each.status == status for each in self.orders)

    @property
    def confirmed(self) -> list[Ordered]:
        return [each for each in self.orders if each.status == CONFIRMED]

    @property
    def goodput(self) -> float:
        """Orders confirmed per second while orders were placed."""
        return self._count_confirmed_by(self.began_at + self.seconds) / self.seconds

    @property
    def confirmed_share(self) -> float:
        """Of the orders due, those confirmed in time: as late as the last one can be."""
        ends_at = self.began_at + self.seconds + LATE_MILLISECONDS_MAX / MILLISECONDS
        return self._count_confirmed_by(ends_at) / (self.rate * self.seconds)

    def _count_confirmed_by(self, instant: float) -> int:
        return sum(each.decided_at <= instant for each in self.confirmed)

    @property
    def is_sustained(self) -> bool:
        """Whether all orders were placed at the rate and confirmed as fast."""
        if self.refused or self.timed_out:
            return False
        begin = self.began_at + self.seconds * 2 / 3
        late = [compute_milliseconds(each) for each in self.orders if each.due_at >= begin]
        if self.confirmed_share < CONFIRMED_SHARE_MIN or len(late) < 2:
            return False
        return percentiles(late)["p99"] <= LATE_MILLISECONDS_MAX

    @property
    def cpu(self) -> dict[str, float]:
        """Milliseconds of each process for an order that was confirmed."""
        confirmed = max(len(self.confirmed), 1)
        return {name: each * MILLISECONDS / confirmed for name, each in self.cpu_seconds.items()}

    @property
    def cpu_of_stack(self) -> float:
        """Milliseconds of all processes but the client."""
        return sum(each for name, each in self.cpu.items() if name != CLIENT)


def compute_milliseconds(order: Ordered) -> float:
    """From when an order was due to the answer with its decision."""
    return (order.decided_at - order.due_at) * MILLISECONDS


async def order(context: StackContext, rate: int, seconds: int) -> Step:
    """Let a client of its own place orders at a rate, and follow each to its end."""
    found_in = context.folder / "ordered.json"
    arguments = [
        ordering.__file__,
        *("--shop", str(context.folder / shop.FILE)),
        *("--address", context.address("orders-api")),
        *("--rate", str(rate)),
        *("--seconds", str(seconds)),
        *("--to", str(found_in)),
    ]
    before = process_tree.servers_cpu_seconds(context)
    async with servers.python(context, arguments, {}) as client:
        await client.wait_until_finished(seconds + CLIENT_SECONDS_MORE_MAX)
    after = process_tree.servers_cpu_seconds(context)
    found = json.loads(found_in.read_text())
    used = {name: after[name] - before[name] for name in before}
    return Step(
        rate=rate,
        seconds=seconds,
        began_at=found["began_at"],
        orders=[Ordered(*each) for each in found["orders"]],
        cpu_seconds=used | {CLIENT: found["own_cpu"]},
        batch_sizes=await compute_batch_sizes(context, found["began_at"]),
    )
