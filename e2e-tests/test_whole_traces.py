"""Every order of a load has a whole trace, also those under way while processes die."""

import asyncio
import os
import time
from collections import Counter
from datetime import datetime

from local_stack.progress import tell
from test_support.system.clients import Hometown
from test_support.system.eventually import NotInTime, eventually
from test_support.system.stack import Stack
from test_support.system.steady_orders import open_account, place_orders
from test_support.system.topology import EDGES, Step
from test_support.system.traces import edges_of, spans_of

ORDERS = int(os.environ.get("HOMETOWN_TRACED_ORDERS", "300"))
"""The campaign has 1,000."""
CONFIRMED_SHARE_MIN = 0.9
"""On a busy machine an order can time out while the worker restarts; it has another trace then."""
ORDERS_PER_SECOND = 50
INCOMPLETE_SHARE_MAX = 0.001
TRACES_SECONDS_MAX = 300
JAEGER_SECONDS_MAX = 900


async def place_while_processes_die(
    stack: Stack, hometown: Hometown, user: str, item: str, hour: datetime
) -> list[str]:
    """A third of the time in, a relay is killed; after another third, a worker restarts."""
    third = ORDERS / ORDERS_PER_SECOND / 3
    placing = asyncio.create_task(
        place_orders(hometown, user, item, hour, count=ORDERS, per_second=ORDERS_PER_SECOND)
    )
    await asyncio.sleep(third)
    await asyncio.to_thread(stack.kill, "orders-relay")
    await asyncio.sleep(third)
    await asyncio.to_thread(restart, stack, "users-worker")
    return await placing


def restart(stack: Stack, name: str) -> None:
    with stack.stopped(name):
        pass


def find_missing(hometown: Hometown, order_id: str) -> set[tuple[Step, Step]]:
    """The edges that the trace of an order lacks."""
    found = {
        edge for trace in hometown.traces_of_order(order_id) for edge in edges_of(spans_of(trace))
    }
    return set(EDGES) - found


def test_every_order_has_a_whole_trace_while_a_relay_dies_and_a_worker_restarts(
    stack: Stack, hometown: Hometown, hour: datetime
) -> None:
    eventually(
        hometown.jaeger_answers, lambda there: there, what="Jaeger", seconds_max=JAEGER_SECONDS_MAX
    )
    user, item = open_account(hometown, hour)

    orders = asyncio.run(place_while_processes_die(stack, hometown, user, item, hour))

    statuses = {each: hometown.wait_for_decision(each)["status"] for each in orders}
    confirmed = [each for each, status in statuses.items() if status == "confirmed"]
    assert len(confirmed) >= CONFIRMED_SHARE_MIN * ORDERS, Counter(statuses.values())
    deadline = time.monotonic() + TRACES_SECONDS_MAX
    incomplete = {}
    for order in confirmed:
        try:
            eventually(
                lambda order=order: find_missing(hometown, order),  # type: ignore[misc]
                lambda missing: not missing,
                what=f"the trace of {order}",
                seconds_max=max(0.0, deadline - time.monotonic()),
            )
        except NotInTime as error:
            incomplete[order] = str(error)
            deadline = min(deadline, time.monotonic() + 5)
    tell(f"{len(incomplete)} of {ORDERS} traces are incomplete")
    assert len(incomplete) <= INCOMPLETE_SHARE_MAX * ORDERS, list(incomplete.values())[:3]
