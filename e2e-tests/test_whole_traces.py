"""Every order of a load has a whole trace, also those under way while processes end."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import pytest

from test_support.first_and_long import first_and_long
from test_support.system.clients import Hometown
from test_support.system.eventually import NotInTime, eventually
from test_support.system.stack import Stack
from test_support.system.steady_orders import open_account, place_orders
from test_support.system.telemetry import load_edges
from test_support.system.traces import edges_of, loose_ends_of, spans_of
from test_support.waits import HANGS_AFTER_SECONDS

EDGES = load_edges("an order is confirmed")
ORDERS_PER_SECOND = 50
CONFIRMED_SHARE_MIN = 0.9
"""An order that times out while the worker restarts is cancelled, and has another trace then."""

pytestmark = pytest.mark.usefixtures("jaeger")


async def place_while_processes_end(
    stack: Stack, hometown: Hometown, hour: datetime, count: int
) -> Sequence[str]:
    """A third of the time in, a relay is killed; after another third, a worker restarts."""
    user, item = open_account(hometown, hour)
    third = count / ORDERS_PER_SECOND / 3
    placing = asyncio.create_task(
        place_orders(hometown, user, item, hour, count=count, per_second=ORDERS_PER_SECOND)
    )
    await asyncio.sleep(third)
    await asyncio.to_thread(stack.kill, "orders-relay")
    await asyncio.sleep(third)
    await asyncio.to_thread(stack.stop, ["users-worker"])
    await asyncio.to_thread(stack.start, ["users-worker"])
    return await placing


def find_gaps(hometown: Hometown, order_id: str) -> Sequence[object]:
    """What the trace of a confirmed order lacks."""
    traces = [spans_of(each) for each in hometown.traces_of_order(order_id)]
    if len(traces) != 1:
        return [f"{len(traces)} traces"]
    [spans] = traces
    loose = [span.step for span in loose_ends_of(spans)]
    return [*(set(EDGES) - edges_of(spans)), *(step for step in loose if step != EDGES[0][0])]


@pytest.mark.parametrize(
    "count", first_and_long([300, 1_000], pytest.mark.verify(part="end-to-end"))
)
def test_every_order_has_a_whole_trace_while_a_relay_is_killed_and_a_worker_restarts(
    stack: Stack, hometown: Hometown, hour: datetime, count: int
) -> None:
    orders = asyncio.run(place_while_processes_end(stack, hometown, hour, count))

    statuses = {each: hometown.wait_for_decision(each)["status"] for each in orders}
    confirmed = [each for each, status in statuses.items() if status == "confirmed"]
    assert len(confirmed) >= CONFIRMED_SHARE_MIN * count, Counter(statuses.values())
    deadline, gaps = time.monotonic() + HANGS_AFTER_SECONDS, {}
    for order in confirmed:
        try:
            eventually(
                lambda order=order: find_gaps(hometown, order),  # type: ignore[misc]
                lambda found: not found,
                what=f"the trace of {order}",
                seconds_max=max(0.0, deadline - time.monotonic()),
            )
        except NotInTime as error:
            gaps[order] = str(error)
    assert not gaps, f"{len(gaps)} of {count}: {list(gaps.values())[:3]}"
