"""A collector of traces that is unavailable costs no request, little memory and few lines."""

import asyncio
import json
from collections import Counter
from datetime import datetime

import pytest

from test_support.first_and_long import first_and_long
from test_support.system.clients import Hometown
from test_support.system.stack import Stack
from test_support.system.steady_orders import open_account, place_orders

ORDERS_PER_SECOND = 30
"""Less than 10,000 in all, which is how many open orders a user can have."""
TRACING = ("orders-api", "orders-relay", "orders-worker", "users-relay", "users-worker")
MEMORY_BYTES_MORE_MAX = 48 << 20
"""The queue of spans has 25 MB; what a process allocates for other things varies by megabytes."""
LINES_PER_MINUTE_MAX = 2
"""Of one process: a request that is repeated, and one that is given up."""

pytestmark = pytest.mark.usefixtures("jaeger")


@pytest.mark.parametrize(
    "seconds", first_and_long([15, 300], pytest.mark.verify(part="end-to-end"))
)
def test_orders_are_placed_while_jaeger_is_unavailable(
    stack: Stack, hometown: Hometown, hour: datetime, seconds: int
) -> None:
    user, item = open_account(hometown, hour)

    def place(seconds: int) -> list[str]:
        """Raises when a request fails."""
        count = seconds * ORDERS_PER_SECOND
        return asyncio.run(
            place_orders(hometown, user, item, hour, count=count, per_second=ORDERS_PER_SECOND)
        )

    lines_before, failed_before = count_lines(stack), count_failed(stack)
    with stack.stopped("jaeger"):
        orders = place(5)
        memory_before = {name: stack.memory_bytes(name) for name in TRACING}
        orders += place(seconds - 5)
        memory = {name: stack.memory_bytes(name) for name in TRACING}
        lines, failed = count_lines(stack) - lines_before, count_failed(stack) - failed_before

    statuses = {hometown.wait_for_decision(order)["status"] for order in orders}
    assert statuses == {"confirmed"}
    for name in TRACING:
        assert memory[name] - memory_before[name] <= MEMORY_BYTES_MORE_MAX, name
        assert lines[name] <= LINES_PER_MINUTE_MAX * (1 + seconds / 60), name
        assert failed[name] > 0, name


def count_lines(stack: Stack) -> Counter[str]:
    """The lines of OpenTelemetry in the log of each process."""
    logs, found = stack.logs(), Counter[str]()
    for name in TRACING:
        for line in logs[name].splitlines():
            if line.startswith("{"):
                found[name] += json.loads(line)["logger"].startswith("opentelemetry.")
    return found


def count_failed(stack: Stack) -> Counter[str]:
    """The spans of each process that Jaeger has not taken."""
    series = "hometown_trace_spans_total"
    return Counter(
        {name: round(sum(stack.read_series(name, series, outcome="failed"))) for name in TRACING}
    )
