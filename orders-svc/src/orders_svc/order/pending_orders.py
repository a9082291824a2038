"""How many orders wait for the decision on them, and how long the oldest one has, as metrics."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import asyncpg

from orders_svc.order import summaries
from orders_svc.order.summaries import PendingOrders
from shared.inbox.consumer import is_transient
from shared.runtime import metrics

ORDERS = metrics.Gauge(
    "hometown.order.pending",
    "{order}",
    "Orders that wait for their decision, 10,000 at most: the same number in each worker",
)
AGE = metrics.Gauge(
    "hometown.order.pending.age", "s", "How long the oldest of these orders has waited"
)
PERIOD_SECONDS = 3.0
"""Between two measurements, and the longest that one can take."""
ORDERS_MAX = 10_000
"""Orders that are counted: so many stand for more."""


async def measure_periodically(pool: asyncpg.Pool) -> None:
    """Measure every PERIOD_SECONDS, and expose nothing while the database is unavailable."""
    last: PendingOrders | None = None

    def expose(read: Callable[[PendingOrders], float]) -> metrics.Read:
        return lambda: {} if last is None else {(): read(last)}

    with (
        ORDERS.read_by(expose(lambda pending: pending.orders)),
        AGE.read_by(expose(lambda pending: pending.age.total_seconds())),
    ):
        while True:
            try:
                async with asyncio.timeout(PERIOD_SECONDS):
                    last = await summaries.count_pending(
                        pool, now=datetime.now(UTC), orders_max=ORDERS_MAX
                    )
            except Exception as error:
                if not is_transient(error):
                    raise
                last = None
            await asyncio.sleep(PERIOD_SECONDS)
