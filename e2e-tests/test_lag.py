"""The observer sees from outside how far each consumer is behind, also one that has stopped."""

from test_support.metric_registry import parse
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.observed import OBSERVER, read_observed
from test_support.system.stack import Stack

STALLED, STOPPED = 2, 3


def read(stack: Stack, name: str, **labels: str) -> float:
    """As the observer has measured it last; 0 for what it does not expose."""
    return read_observed(stack, name, **labels) or 0.0


def test_the_lag_of_a_worker_that_is_stopped_rises_until_it_is_back(
    stack: Stack, hometown: Hometown
) -> None:
    def lag() -> float:
        return read(stack, "hometown_consumer_lag", consumer="users-worker", topic="users.v1")

    def state() -> float:
        return read(stack, "hometown_consumer_state", consumer="users-worker")

    eventually(lag, lambda seen: seen == 0, what="the worker has read everything")
    with stack.stopped("users-worker"):
        for _ in range(3):
            hometown.register_user(name="Jill", address="BJ", gender="female", credit_limit="1.00")
        eventually(lag, lambda seen: seen == 3, what="the lag of a worker that is stopped")
        eventually(state, lambda seen: seen == STOPPED, what="it is known to have stopped")
        assert "STOP" in stack.make_output("lag")

    eventually(lag, lambda seen: seen == 0, what="the worker has caught up")
    eventually(state, lambda seen: seen == 0, what="it is OK again")


def test_the_lag_of_the_job_is_that_of_its_last_batch(stack: Stack, hometown: Hometown) -> None:
    def lag() -> float:
        return read(stack, "hometown_consumer_lag", consumer="analytics-job")

    eventually(lag, lambda seen: seen == 0, what="the job has counted everything")
    with stack.stopped("analytics-job"):
        hometown.register_user(name="Jo", address="BJ", gender="male", credit_limit="1.00")
        eventually(lag, lambda seen: seen == 1, what="the lag of a job that is stopped")
    eventually(lag, lambda seen: seen == 0, what="the job has caught up")


def test_an_outbox_without_a_relay_grows_and_becomes_old(stack: Stack, hometown: Hometown) -> None:
    def rows() -> float:
        return read(stack, "hometown_outbox_rows", database="users")

    with stack.stopped("users-relay"):
        hometown.register_user(name="Jim", address="BJ", gender="male", credit_limit="1.00")
        eventually(rows, lambda seen: seen == 1, what="a row that waits")
        eventually(
            lambda: read(stack, "hometown_relay_holders", database="users"),
            lambda seen: seen == 0,
            what="no relay holds the lease",
        )
        eventually(
            lambda: read(stack, "hometown_outbox_age_seconds", database="users"),
            lambda seen: seen > 5,
            what="it becomes old",
        )
    eventually(rows, lambda seen: seen == 0, what="the outbox is empty")


def test_every_server_is_measured(stack: Stack) -> None:
    eventually(
        lambda: read(stack, "hometown_observer_reached"),
        lambda seen: seen == 4,
        what="three databases and the broker",
    )
    assert abs(read(stack, "hometown_clock_skew_seconds", database="users")) < 5


def test_the_disk_of_each_server_is_measured(stack: Stack) -> None:
    def find(process: str) -> set[str]:
        return {
            sample.labels["disk"]
            for exposed, _, sample in parse(stack.read_metrics(process))
            if exposed == "hometown_disk_free_bytes" and sample.value > 0
        }

    found = eventually(
        lambda: find(OBSERVER), lambda seen: len(seen) >= 2, what="the disks of the servers"
    )
    assert found >= {"postgres", "kafka-1"}
    assert find("analytics-job") == {"spark"}
