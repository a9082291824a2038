"""Where the time of an order is spent: from each of its events to the next."""

from collections.abc import Sequence
from statistics import median

import asyncpg

from benchmarks import servers
from benchmarks.whole.ordering import Ordered
from local_stack import postgres
from local_stack.stack_spec import StackContext

MILLISECONDS = 1_000
HOPS = (
    "due to recorded",
    "recorded to credit reserved",
    "credit reserved to confirmed",
    "confirmed to answered",
)

OF_ORDERS = """
    SELECT stream_id::text AS order_id, extract(epoch FROM recorded_at)::float8 AS at
    FROM events
    WHERE type = $1 AND stream_id = ANY($2)
"""
# Rows of one transaction have one xmin.
BATCH_SIZE = """
    SELECT count(*)::float8 / count(DISTINCT xmin::text)
    FROM events
    WHERE type = $1 AND recorded_at >= to_timestamp($2)
"""
OF_CREDIT = """
    SELECT data ->> 'order_id' AS order_id, extract(epoch FROM recorded_at)::float8 AS at
    FROM events
    WHERE type = 'credit-reserved' AND data ->> 'order_id' = ANY($1)
"""


async def compute_batch_sizes(context: StackContext, began_at: float) -> dict[str, float]:
    """Decisions on orders in one transaction of each worker, since an instant in seconds."""
    sizes = {}
    for worker, database, type_ in (
        ("users-worker", "users", "credit-reserved"),
        ("orders-worker", "orders", "order-confirmed"),
    ):
        async with servers.connected(postgres.dsn(context, database)) as connection:
            sizes[worker] = await connection.fetchval(BATCH_SIZE, type_, began_at)
    return sizes


async def compute_hops(context: StackContext, ordered: Sequence[Ordered]) -> dict[str, float]:
    """Milliseconds of each of HOPS; an event's instant is when its append was called."""
    ids = [each.order_id for each in ordered]
    async with (
        servers.connected(postgres.dsn(context, "orders")) as orders,
        servers.connected(postgres.dsn(context, "users")) as users,
    ):
        recorded = read_instants(await orders.fetch(OF_ORDERS, "order-placed", ids))
        confirmed = read_instants(await orders.fetch(OF_ORDERS, "order-confirmed", ids))
        reserved = read_instants(await users.fetch(OF_CREDIT, ids))
    instants = [
        (
            each.due_at,
            recorded[each.order_id],
            reserved[each.order_id],
            confirmed[each.order_id],
            each.decided_at,
        )
        for each in ordered
    ]
    return {
        name: median((one[end] - one[end - 1]) * MILLISECONDS for one in instants)
        for end, name in enumerate(HOPS, start=1)
    }


def read_instants(rows: Sequence[asyncpg.Record]) -> dict[str, float]:
    return {row["order_id"]: row["at"] for row in rows}
