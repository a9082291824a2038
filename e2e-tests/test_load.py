"""Load with known totals: they are counted to the cent, also around kills; a deviation is found."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

import pytest

from test_support.system.clients import Hometown, rfc3339
from test_support.system.eventually import eventually
from test_support.system.stack import Stack
from verification.load.actions import NAMES, PlaceOrder
from verification.load.campaign import Story, load
from verification.load.compare import find_differences, observe
from verification.load.plan import Scale

SMALL = ("rate=30", "seconds=10", "users=40", "items=15", "late=10")
KILLED = ("users-worker", "orders-relay", "orders-api")
BEGUN_EVENTS = 60
"""When so many are recorded, the load is about half way."""

EVENTS = "SELECT count(*) AS count FROM events"
MORE_BY_A_CENT = """
    UPDATE {cells}
    SET cents = cents + $1
    WHERE (hour, user_id, item_id) = (
        SELECT hour, user_id, item_id
        FROM {cells}
        WHERE hour >= $2 AND user_id <> ''
        ORDER BY hour, user_id, item_id
        LIMIT 1
    )
"""


def figures_of(stack: Stack) -> Mapping[str, float]:
    written = json.loads((stack.folder / "bench" / "load.json").read_text())
    return {figure["name"]: figure["value"] for figure in written}


def recorded(stack: Stack) -> int:
    """Events of orders-svc."""
    [row] = stack.fetch("orders", EVENTS)
    return int(row["count"])


@pytest.mark.verify(part="end-to-end")
def test_all_kinds_of_load_are_counted_to_the_cent(stack: Stack, gap: datetime) -> None:
    printed = stack.make_output("load", f"gap={rfc3339(gap)}", *SMALL)

    figures = figures_of(stack)
    assert "differences: 0" in printed
    assert figures["differences"] == 0
    assert all(figures[f"{kind}: sent"] > 0 for kind in NAMES.values())
    assert figures["orders too late"] > 0


def test_load_is_counted_to_the_cent_around_kills(stack: Stack, gap: datetime) -> None:
    before = recorded(stack)
    with ThreadPoolExecutor(max_workers=1) as others:
        loading = others.submit(stack.make_output, "load", f"gap={rfc3339(gap)}", *SMALL)
        eventually(
            lambda: recorded(stack), lambda seen: seen >= before + BEGUN_EVENTS, what="load begun"
        )
        for name in KILLED:
            stack.kill(name)
        printed = loading.result()

    assert "differences: 0" in printed
    assert figures_of(stack)["all: sent again"] > 0


@pytest.fixture
def loaded(hometown: Hometown, gap: datetime) -> Story:
    return load(hometown, Scale(seed=2, rate=30, seconds=3, users=20, items=10), gap=gap)


def test_a_deviation_is_found(loaded: Story, stack: Stack, hometown: Hometown) -> None:
    """The negative control: one order less in the log, and one cent more in the table."""
    run, window, before = loaded.run, loaded.window, loaded.before
    seen = loaded.settled.observation
    assert loaded.settled.differences == []

    confirmed = next(
        outcome
        for outcome in run.outcomes
        if isinstance(outcome.planned.action, PlaceOrder)
        and outcome.response is not None
        and seen.orders[outcome.response.body["order_id"]]["status"] == "confirmed"
    )
    forgetful = replace(run, outcomes=[each for each in run.outcomes if each is not confirmed])
    forgotten = find_differences(forgetful, window, before, seen)
    assert any(difference.startswith("status: orders_counted") for difference in forgotten)
    assert any(difference.startswith("user ") for difference in forgotten)

    more = MORE_BY_A_CENT.format(cells=stack.cells)
    stack.fetch("analytics", more, 1, window.gap)
    tampered = find_differences(run, window, before, observe(hometown, run, window))
    stack.fetch("analytics", more, -1, window.gap)
    assert tampered
    assert all(difference.startswith("hour ") for difference in tampered)
