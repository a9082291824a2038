"""A record is delivered without Faust's race, unless the delivery may have to wait; and offsets are
committed past a record that was delivered twice."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from faust.transport.drivers import aiokafka
from faust.types import TP
from mode.utils.queues import FlowControlEvent

from shared.inbox.faust_transport import App, Consumer, DirectConsumer, WorkerApp


class Deliveries:
    """What was delivered, and how many deliveries went through Faust's race."""

    def __init__(self) -> None:
        self.delivered = self.raced = 0

    async def deliver(self) -> None:
        self.delivered += 1

    async def race(self, *coros: Any, **options: Any) -> None:
        self.raced += 1
        for each in coros:
            each.close()


@pytest.fixture
def deliveries(monkeypatch: pytest.MonkeyPatch) -> Deliveries:
    found = Deliveries()
    monkeypatch.setattr(
        aiokafka.Consumer, "wait_first", lambda self, *coros: found.race(*coros), raising=True
    )
    return found


@pytest.mark.parametrize(
    ("is_suspended", "is_full", "is_raced"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
async def test_a_delivery_that_may_wait_can_be_interrupted(
    deliveries: Deliveries,
    monkeypatch: pytest.MonkeyPatch,
    is_suspended: bool,
    is_full: bool,
    is_raced: bool,
) -> None:
    flow = FlowControlEvent(initially_suspended=is_suspended)
    queue: asyncio.Queue[None] = asyncio.Queue(maxsize=1)
    if is_full:
        queue.put_nowait(None)
    consumer = object.__new__(DirectConsumer)
    app = SimpleNamespace(flow_control=flow, topics=[SimpleNamespace(queue=queue)])
    monkeypatch.setattr(consumer, "app", app, raising=False)

    await consumer.wait_first(deliveries.deliver(), asyncio.sleep(0))

    assert (deliveries.raced, deliveries.delivered) == ((1, 0) if is_raced else (0, 1))


PLACE = TP("users.v1", 0)


@pytest.mark.parametrize(("kind", "committed"), [(Consumer, 6), (aiokafka.Consumer, 4)])
def test_a_record_that_was_delivered_twice_does_not_hold_up_the_commit(
    kind: type[aiokafka.Consumer], committed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: Faust's own consumer takes the repeat for a gap."""
    consumer = object.__new__(kind)
    state = {
        "_acked": {PLACE: [2, 3, 3, 4, 5, 7]},
        "_acked_index": {PLACE: {2, 3, 4, 5, 7}},
        "_gap": {PLACE: ()},
        "_committed_offset": {PLACE: 3},
    }
    for name, value in state.items():
        monkeypatch.setattr(consumer, name, value, raising=False)

    assert consumer._new_offset(PLACE) == committed


@pytest.mark.parametrize(("kind", "consumer"), [(App, Consumer), (WorkerApp, DirectConsumer)])
def test_an_application_has_its_consumer(
    kind: type[App], consumer: type[aiokafka.Consumer]
) -> None:
    app = kind("test", broker="kafka://127.0.0.1:1")

    assert app.transport.Consumer is consumer


@pytest.mark.parametrize(("kind", "created"), [(WorkerApp, 0), (faust.App, 1)])
def test_a_worker_creates_no_folder_where_it_runs(
    kind: type[faust.App], created: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: Faust's own application creates one, also for tables in memory."""
    monkeypatch.chdir(tmp_path)

    kind("users-worker", store="memory://")._create_directories()

    assert len([*tmp_path.iterdir()]) == created
