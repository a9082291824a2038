"""What stops in a running stack fires its alert within a minute, from what processes expose.

`make alerts` tries every fault; the tests of each day try those that take least time.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial

import httpx
import pytest
from aiokafka import AIOKafkaProducer

from fetching.errors import Failure
from local_stack import ports, tools
from local_stack.hometown import HOMETOWN
from local_stack.status import as_found
from shared.runtime.identifiers import new_id
from test_support.alerting.promql import Samples
from test_support.alerting.rules import Alerts
from test_support.metric_registry import PROCESSES, parse
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.sample import Sample
from test_support.system.stack import Stack
from test_support.system.tampering import tamper

SCRAPE_SECONDS = 2.0
FIRED_SECONDS_MAX = 60.0
BEFORE_SECONDS = 10.0
QUIET_SECONDS = 600.0
Firing = tuple[str, str]
"""An alert, and the value of a label that it fires for, if it has labels."""
WITHOUT_LABELS = ("", "")

FAULTS: Mapping[str, set[Firing]] = {
    "users-relay": {("ProcessDown", "users-relay"), ("OutboxWaits", "users")},
    "users-worker": {("ProcessDown", "users-worker"), ("ConsumerStopped", "users-worker")},
    "analytics-job": {("ProcessDown", "analytics-job"), ("ConsumerStopped", "analytics-job")},
    "kafka": {("OutboxWaits", "users"), ("ServerUnreachable", "kafka")},
}
"""What fires while a process is stopped. Other tests of the same stack leave parked streams."""
EACH_DAY = ("users-relay", "users-worker")
pytestmark = pytest.mark.skipif(
    os.environ.get("HOMETOWN_TEST_IN", "processes") != "processes",
    reason="what containers expose is the same, and to ask each of them takes seconds",
)
IS_CAMPAIGN = os.environ.get("HOMETOWN_ALERTS") == "all"
"""With a stack of their own: others leave parked streams, and stop processes."""
campaign = pytest.mark.skipif(not IS_CAMPAIGN, reason="make alerts")


class Prometheus:
    """Scrapes all processes and evaluates the alerts."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._samples, self._alerts = Samples(), Alerts()

    def observe(self) -> set[Firing]:
        """Scrape once; the alerts that fire."""
        for process in PROCESSES:
            self._scrape(process, partial(self._stack.read_metrics, process))
        return self._evaluate()

    def observe_only(self, job: str, url: str) -> set[Firing]:
        """The same of one process, which is not of the stack."""
        self._scrape(job, lambda: httpx.get(url).raise_for_status().text)
        return self._evaluate()

    def _scrape(self, job: str, read: Callable[[], str]) -> None:
        try:
            samples = list(parse(read()))
        except (httpx.HTTPError, Failure):
            samples = []
        now = time.time()
        self._samples.add(now, "up", {"job": job}, float(bool(samples)))
        for _, _, sample in samples:
            self._samples.add(now, sample.name, {"job": job, **sample.labels}, sample.value)
        self._samples.end_missing(now, {"job": job})

    def _evaluate(self) -> set[Firing]:
        firing = self._alerts.evaluate(self._samples, time.time())
        return {
            (name, value)
            for name, found in firing.items()
            for labels in found
            for _, value in labels or (WITHOUT_LABELS,)
        }

    def observe_until(
        self, is_over: Callable[[set[Firing]], bool], seconds_max: float
    ) -> set[Firing]:
        """All alerts that fired until `is_over`, or until the time is over."""
        fired, deadline = set[Firing](), time.monotonic() + seconds_max
        while not is_over(fired) and time.monotonic() < deadline:
            fired |= self.observe()
            time.sleep(SCRAPE_SECONDS)
        return fired


@pytest.fixture
def prometheus(stack: Stack) -> Prometheus:
    return Prometheus(stack)


@pytest.mark.parametrize("process", FAULTS if IS_CAMPAIGN else EACH_DAY)
def test_a_process_that_is_stopped_fires_its_alerts_within_a_minute(
    stack: Stack, hometown: Hometown, prometheus: Prometheus, process: str
) -> None:
    fired = prometheus.observe_until(lambda _: False, BEFORE_SECONDS)
    assert not fired & FAULTS[process]

    with stack.stopped(process):
        hometown.register_user(name="Jill", address="BJ", gender="female", credit_limit="1.00")
        fired = prometheus.observe_until(lambda seen: seen >= FAULTS[process], FIRED_SECONDS_MAX)
        assert fired >= FAULTS[process]

    eventually(
        prometheus.observe,
        lambda firing: not firing & FAULTS[process],
        what="the alerts are over",
    )


@campaign
def test_nothing_fires_in_a_quiet_while(prometheus: Prometheus) -> None:
    assert prometheus.observe_until(bool, QUIET_SECONDS) == set()


@campaign
def test_a_poison_event_fires_until_an_operator_has_discarded_it(
    stack: Stack, prometheus: Prometheus
) -> None:
    stream = str(new_id())
    asyncio.run(publish_poison(stack, stream))

    parked = {("StreamParked", "users-worker")}
    assert prometheus.observe_until(parked.issubset, FIRED_SECONDS_MAX) >= parked

    for action in (["discard", stream, "1"], ["redrive", stream]):
        words = ["parked", *action, "--reason", "not an event"]
        assert tools.run(HOMETOWN, stack.settings, "users", words) == 0
    eventually(prometheus.observe, lambda firing: not firing & parked, what="nothing parked")


async def publish_poison(stack: Stack, stream: str) -> None:
    """A record of users.v1 whose value is no event."""
    headers = {
        "ce_id": str(new_id()),
        "ce_type": "user-registered",
        "ce_schemaversion": "1",
        "ce_streamid": stream,
        "ce_streamversion": "1",
        "ce_previousversion": "0",
        "ce_correlationid": str(new_id()),
        "ce_time": "2016-11-11T00:00:00Z",
    }
    async with AIOKafkaProducer(bootstrap_servers=stack.hometown.addresses["kafka"]) as producer:
        await producer.send_and_wait(
            "users.v1",
            b"poison",
            stream.encode(),
            headers=[(name, value.encode()) for name, value in headers.items()],
        )


@campaign
def test_an_altered_cell_fires_until_it_is_restored(
    stack: Stack, prometheus: Prometheus, final_sample: Sample
) -> None:
    differs = {("CellsDiffer", "")}
    tamper(stack, final_sample, 1)
    try:
        assert prometheus.observe_until(differs.issubset, FIRED_SECONDS_MAX) >= differs
    finally:
        tamper(stack, final_sample, -1)
    eventually(prometheus.observe, lambda firing: not firing & differs, what="it is over")


WRONG_CLOCK = """
import runpy, sys, time
right = time.time
time.time = lambda: right() + 60
sys.argv[1:] = ["watch"]
runpy.run_module("observer_svc", run_name="__main__")
"""


@campaign
def test_a_wrong_clock_fires(stack: Stack, prometheus: Prometheus) -> None:
    """Of a process, which Prometheus compares with its own, and of the databases, as it seems to
    an observer whose clock is the wrong one."""
    [observer] = [each for each in HOMETOWN.processes if each.name == "observer"]
    port = str(ports.find_free())
    environment = os.environ | observer.environment(as_found(stack.settings)) | {"HTTP_PORT": port}
    process = subprocess.Popen([sys.executable, "-c", WRONG_CLOCK], env=environment)
    try:
        skewed = {("ClockSkewed", "wrong"), ("ClockSkewed", "users")}
        eventually(
            lambda: prometheus.observe_only("wrong", f"http://127.0.0.1:{port}/metrics"),
            lambda firing: firing >= skewed,
            what="it fires",
            seconds_max=FIRED_SECONDS_MAX,
        )
    finally:
        process.terminate()
        process.wait()
