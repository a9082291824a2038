"""A collector of traces that is down costs no request, no memory and no log."""

import asyncio
import os
from collections.abc import Mapping
from datetime import datetime

import pytest

from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.stack import Stack
from test_support.system.steady_orders import open_account, place_orders

SECONDS = int(os.environ.get("HOMETOWN_JAEGER_STOPPED_SECONDS", "15"))
"""The campaign has 300."""
ORDERS_PER_SECOND = 20
TRACING = ("orders-api", "orders-relay", "orders-worker", "users-relay", "users-worker")
MEMORY_BYTES_MORE_MAX = 32 << 20
"""A process queues 2,048 spans; what it allocates for other things varies by some megabytes."""
COMPLAINTS_PER_MINUTE_MAX = 2
EXPORTER = "opentelemetry"


@pytest.fixture(autouse=True)
def jaeger(stack: Stack, hometown: Hometown) -> None:
    stack.demand_jaeger()
    eventually(hometown.jaeger_answers, lambda there: there, what="Jaeger", seconds_max=900)


def test_orders_are_placed_while_jaeger_is_down(
    stack: Stack, hometown: Hometown, hour: datetime
) -> None:
    user, item = open_account(hometown, hour)

    def place(seconds: int) -> list[str]:
        count = seconds * ORDERS_PER_SECOND
        return asyncio.run(
            place_orders(hometown, user, item, hour, count=count, per_second=ORDERS_PER_SECOND)
        )

    with stack.stopped("jaeger"):
        complaints_before = count_complaints(stack)
        orders = place(SECONDS // 3)
        memory_before = read_memory(stack)
        orders += place(SECONDS - SECONDS // 3)
        memory = read_memory(stack)
        complaints = count_complaints(stack)

    decided = {hometown.wait_for_decision(order)["status"] for order in orders[-ORDERS_PER_SECOND:]}
    assert decided == {"confirmed"}
    for name in TRACING:
        assert memory[name] - memory_before[name] <= MEMORY_BYTES_MORE_MAX, name
        more = complaints[name] - complaints_before[name]
        assert more <= COMPLAINTS_PER_MINUTE_MAX * (1 + SECONDS / 60), name
    assert sum(complaints.values()) > sum(complaints_before.values()), "it is said, though"


def read_memory(stack: Stack) -> Mapping[str, int]:
    return {name: stack.memory_bytes(name) for name in TRACING}


def count_complaints(stack: Stack) -> Mapping[str, int]:
    logs = stack.logs()
    return {name: sum(EXPORTER in line for line in logs[name].splitlines()) for name in TRACING}
