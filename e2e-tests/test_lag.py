"""What has stopped, hangs or cannot be reached is seen from outside, within seconds."""

import json
from collections.abc import Iterator
from datetime import datetime

import httpx
import pytest

from local_stack.observing import OBSERVER
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.stack import Stack

OK, STALL, STOP = 0, 2, 3
"""As the metrics have them."""
ORDERS_AT_ONCE = 10


def read(stack: Stack, series: str, **labels: str) -> list[float]:
    """Read what the observer has measured last."""
    return stack.read_series(OBSERVER, series, **labels)


def wait_for(stack: Stack, series: str, value: float, what: str, **labels: str) -> None:
    """Wait until the largest number of these series has a value."""
    eventually(
        lambda: read(stack, series, **labels),
        lambda seen: bool(seen) and max(seen) == value,
        what=what,
    )


def register(hometown: Hometown) -> None:
    hometown.register_user(name="Jill", address="BJ", gender="female", credit_limit="1.00")


@pytest.fixture(autouse=True)
def at_rest(stack: Stack) -> Iterator[None]:
    """All is well before each test, and after it."""
    eventually(lambda: stack.make("lag").returncode, lambda status: status == 0, what="no stop")
    yield
    eventually(lambda: stack.make("lag").returncode, lambda status: status == 0, what="no stop")


def test_the_lag_of_what_has_stopped_rises_and_its_state_is_a_stop(
    stack: Stack, hometown: Hometown
) -> None:
    readers = ("users-worker", "analytics-job")
    for reader in readers:
        wait_for(stack, "hometown_consumer_lag", 0, "all is read", consumer=reader)
    with stack.stopped("orders-relay", *readers):
        register(hometown)
        for reader in readers:
            wait_for(stack, "hometown_consumer_lag", 1, "a lag", consumer=reader)
            wait_for(stack, "hometown_consumer_state", STOP, "a stop", consumer=reader)
            wait_for(stack, "hometown_consumer_alive", 0, "no consumer", consumer=reader)
        wait_for(stack, "hometown_relay_state", STOP, "a stop", database="orders")
        lines = stack.make("lag").stdout.splitlines()
        stopped = {line.split()[0] for line in lines if line.endswith("STOP")}

    assert stopped == {"orders-relay", *readers}
    for reader in readers:
        wait_for(stack, "hometown_consumer_state", OK, "it reads again", consumer=reader)


def test_a_relay_that_is_frozen_does_not_look_like_a_quiet_one(stack: Stack) -> None:
    """Nothing waits for it, before and after."""
    with stack.frozen("users-relay"):
        eventually(
            lambda: read(stack, "hometown_relay_beat_age_seconds", database="users"),
            lambda seen: bool(seen) and max(seen) > 5,
            what="no sign of life",
        )
        wait_for(stack, "hometown_relay_state", STOP, "its lease has ended", database="users")
        assert read(stack, "hometown_outbox_rows", database="users") == [0]
    wait_for(stack, "hometown_relay_state", OK, "a relay publishes again", database="users")


def test_without_a_broker_the_outbox_grows_and_no_lag_is_shown(
    stack: Stack, hometown: Hometown
) -> None:
    with stack.stopped("kafka"):
        register(hometown)
        wait_for(stack, "hometown_observer_reached", 0, "no broker", server="kafka")
        wait_for(stack, "hometown_outbox_rows", 1, "a row that waits", database="users")
        wait_for(stack, "hometown_relay_state", STALL, "it hangs", database="users")
        ended = stack.make("lag", "args=--json")
        report = json.loads(ended.stdout)

        assert ended.returncode != 0
        assert (report["consumers"], report["servers"]["users"]) == ([], None)
        assert report["servers"]["kafka"]
    wait_for(stack, "hometown_outbox_rows", 0, "the outbox is empty", database="users")


def test_orders_that_wait_are_counted_and_those_that_are_refused(
    stack: Stack, hometown: Hometown, hour: datetime
) -> None:
    """More than can always wait, until one is refused."""
    user = hometown.register_user(
        name="Jill", address="BJ", gender="female", credit_limit="1000000.00"
    )["user_id"]
    item = hometown.list_item(name="thing", type="phone", origin="BJ", price="1.00")["item_id"]
    first = hometown.place_order(user, [(item, 1)], hour)["order_id"]
    assert hometown.wait_for_decision(first)["status"] == "confirmed"

    def is_refused() -> bool:
        """Each look places several: they count as waiting for 20 seconds."""
        try:
            for _ in range(ORDERS_AT_ONCE):
                hometown.place_order(user, [(item, 1)], hour)
        except httpx.HTTPStatusError as refusal:
            return refusal.response.status_code == httpx.codes.SERVICE_UNAVAILABLE
        return False

    def read_pending() -> tuple[float, float]:
        waiting = stack.read_series("orders-worker", "hometown_order_pending")
        ages = stack.read_series("orders-worker", "hometown_order_pending_age_seconds")
        return max(waiting, default=-1), max(ages, default=-1)

    with stack.stopped("users-worker"):
        eventually(is_refused, bool, what="an order that is refused")
        assert max(stack.read_series("orders-api", "hometown_order_refusals_total")) >= 1
        eventually(read_pending, lambda seen: min(seen) > 0, what="orders that wait")
    eventually(read_pending, lambda seen: seen[0] == 0, what="a decision on all orders")


def test_clocks_are_compared(stack: Stack) -> None:
    skews = read(stack, "hometown_clock_skew_seconds")

    assert len(skews) == 3
    assert max(map(abs, skews)) < 5


def test_the_room_on_the_disk_is_known(stack: Stack) -> None:
    [free], [size] = (read(stack, f"hometown_disk_{each}_bytes") for each in ("free", "size"))

    assert 0 < free < size
