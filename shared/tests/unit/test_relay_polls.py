"""When the relay polls: at once while rows are waiting, otherwise when it is notified."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError

from shared.messaging.kafka import NotAcknowledged
from shared.messaging.wire import RecordBatch
from shared.outbox import lease, outbox, relay
from shared.outbox.behind import BehindPartitions
from shared.outbox.lease import Lease
from shared.outbox.outbox import RelayCheckpoint, Snapshot
from shared.outbox.refused import RefusedStreams
from shared.outbox.relay import PUBLISHED, RETRIES, ActiveRelay
from shared.runtime.identifiers import new_id
from test_support.counted import counting
from test_support.written_log import written_log

HOURS_SECONDS = 3_600.0
"""Longer than any test."""
TURNS = 50
"""Of the event loop: more than the relay needs from one poll to the next."""
NO_ROWS: Sequence[Any] = ()


def a_row(topic: str, milliseconds: float = 0) -> Any:
    """Make a row of the only partition of its topic, recorded so long after 1970."""
    target = (topic, 0)
    record = SimpleNamespace(milliseconds=milliseconds, target=target)
    return SimpleNamespace(position=1, traceparent=None, record=record, topic=topic, target=target)


def a_batch(topic: str, count: int, base_offset: int = 0) -> RecordBatch:
    """Make a batch of the only partition of its topic that was acknowledged."""
    batch = RecordBatch(topic, 0, bytes_max=0)
    batch.count, batch.base_offset = count, base_offset
    return batch


A_ROW = (a_row("counters"),)


class Outbox:
    """In place of the outbox: its polls find `found` one after the other, and then no rows."""

    def __init__(self) -> None:
        self.found: list[Sequence[Any] | None] = []
        self.polls = 0

    async def poll(self, *_: object) -> tuple[str, Sequence[Any] | None]:
        self.polls += 1
        return f"1:{self.polls}:", self.found.pop(0) if self.found else NO_ROWS

    async def is_ahead(self, _: object) -> bool:
        return False

    async def read_window_floor(self, *_: object) -> int:
        return 0

    async def read_page(self, *_: object) -> Sequence[Any]:
        return NO_ROWS


class Broker:
    """Acknowledges everything at once, unless it raises the next of `refuses`."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}
        self.batches = 0
        self.refuses: list[KafkaError] = []
        self.responds = asyncio.Event()
        self.responds.set()

    async def require_acknowledged(self) -> dict[Any, Any]:
        return {}

    async def publish(self, records: Iterable[Any], then: object) -> Sequence[RecordBatch]:
        self.batches += 1
        await self.responds.wait()
        if self.refuses:
            raise self.refuses.pop(0)
        topics = Counter(each.target[0] for each in records)
        return [a_batch(topic, count) for topic, count in topics.items()]


class Rhythm:
    """An active relay whose outbox and broker are in memory."""

    def __init__(self) -> None:
        self.outbox, self.broker = Outbox(), Broker()
        self.notified, self._stopping = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ActiveRelay]:
        nothing: Any = None
        broker: Any = self.broker
        lease = Lease(new_id(), 1, float("inf"))
        active = ActiveRelay(
            nothing,
            nothing,
            lease,
            RelayCheckpoint(Snapshot("1")),
            broker,
            self.notified,
            name="test",
            connect=nothing,
        )
        publishing = asyncio.create_task(active.publish_until(self._stopping))
        try:
            await self.settle()
            yield active
        finally:
            publishing.cancel()
            await asyncio.gather(publishing, return_exceptions=True)

    async def notify(self) -> None:
        self.notified.set()
        await self.settle()

    async def settle(self) -> None:
        """Until the relay waits for something that does not come by itself."""
        for _ in range(TURNS):
            await asyncio.sleep(0)


@pytest.fixture
def rhythm(monkeypatch: pytest.MonkeyPatch) -> Rhythm:
    """Without a notification the relay would poll only hours later."""
    made = Rhythm()
    for name in ("poll", "is_ahead", "read_window_floor", "read_page"):
        monkeypatch.setattr(outbox, name, getattr(made.outbox, name))

    async def load(_: RefusedStreams) -> None:
        pass

    monkeypatch.setattr(RefusedStreams, "load", load)
    monkeypatch.setattr(relay, "IDLE_SECONDS_MAX", HOURS_SECONDS)
    monkeypatch.setattr(relay, "POLL_SECONDS_MIN", 0.0)
    return made


async def test_after_a_batch_the_relay_waits_for_its_notification(rhythm: Rhythm) -> None:
    rhythm.outbox.found = [A_ROW]
    async with rhythm.running():
        assert (rhythm.outbox.polls, rhythm.broker.batches) == (1, 1)

        rhythm.outbox.found = [A_ROW]
        await rhythm.notify()

        assert (rhythm.outbox.polls, rhythm.broker.batches) == (2, 2)


async def test_a_notification_during_a_poll_leads_to_another_poll(
    rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was committed after its snapshot is not left until the next notification."""
    poll = rhythm.outbox.poll

    async def commit_meanwhile(*arguments: object) -> tuple[str, Sequence[Any] | None]:
        if rhythm.outbox.polls == 0:
            rhythm.notified.set()
            rhythm.outbox.found = [NO_ROWS, A_ROW]
        return await poll(*arguments)

    monkeypatch.setattr(outbox, "poll", commit_meanwhile)
    async with rhythm.running():
        assert (rhythm.outbox.polls, rhythm.broker.batches) == (2, 1)


async def test_a_lost_notification_delays_a_commit_by_the_idle_time(
    rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "IDLE_SECONDS_MAX", 0.001)
    async with rhythm.running():
        rhythm.outbox.found = [A_ROW]
        async with asyncio.timeout(HOURS_SECONDS):
            while not rhythm.broker.batches:
                await asyncio.sleep(0.001)


async def test_notifications_within_the_minimum_share_a_poll(
    rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "POLL_SECONDS_MIN", HOURS_SECONDS)
    async with rhythm.running():
        for _ in range(3):
            await rhythm.notify()

        assert rhythm.outbox.polls == 1


async def test_without_a_minimum_each_notification_is_a_poll(rhythm: Rhythm) -> None:
    """The negative control."""
    async with rhythm.running():
        for _ in range(3):
            await rhythm.notify()

        assert rhythm.outbox.polls == 1 + 3


async def test_a_backlog_is_read_without_a_wait(
    rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll that finds too much opens a window, and the next one follows the window at once."""
    monkeypatch.setattr(relay, "POLL_SECONDS_MIN", HOURS_SECONDS)
    rhythm.outbox.found = [None, None, A_ROW]
    async with rhythm.running():
        assert (rhythm.outbox.polls, rhythm.broker.batches) == (3, 1)


async def test_acknowledged_records_count_by_their_topic(rhythm: Rhythm) -> None:
    rhythm.outbox.found = [[a_row("one"), a_row("other"), a_row("one")]]

    with counting(PUBLISHED) as counted:
        async with rhythm.running():
            pass

    assert counted == {("one",): 2, ("other",): 1}


async def test_what_was_acknowledged_is_a_line_with_its_offsets() -> None:
    batches = [a_batch("one", 2, 10), a_batch("other", 1, 5), a_batch("one", 3, 12)]
    with written_log() as written:
        relay.report_published([*batches, a_batch("repeated", 1, -1)], 0.5)
        relay.report_published([], 0.5)

    [line] = written.find("published")
    assert (line["records"], line["seconds"]) == (7, 0.5)
    assert line["offsets"] == {"one": {"0": [10, 15]}, "other": {"0": [5, 6]}}


async def test_the_delay_of_a_batch_is_that_of_its_oldest_event_in_seconds(
    rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    monkeypatch.setattr(relay.DELAY, "record", delays.append)
    now = time.time() * 1000
    rhythm.outbox.found = [[a_row("one", now), a_row("one", now - 7_000), a_row("one", now)]]

    async with rhythm.running():
        pass

    assert delays == [pytest.approx(7, abs=2)]


async def test_records_of_a_partition_that_takes_none_do_not_count(rhythm: Rhythm) -> None:
    rhythm.outbox.found = [[a_row("one"), a_row("other")]]
    rhythm.broker.refuses = [
        NotAcknowledged({("other", 0): KafkaError("not now")}, [a_batch("one", 1)])
    ]

    with counting(PUBLISHED) as counted:
        async with rhythm.running():
            pass

    assert counted == {("one",): 1}


async def test_records_of_a_parked_stream_count_when_they_are_redriven(
    rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id, waiting = new_id(), [([1, 2], [a_row("one"), a_row("one")]), ([], [])]
    refused: Any = RefusedStreams
    monkeypatch.setattr(refused, "__bool__", lambda _: bool(waiting))
    monkeypatch.setattr(refused, "find_requested", AsyncMock(return_value=[stream_id]))
    monkeypatch.setattr(refused, "read_waiting", AsyncMock(side_effect=lambda _: waiting.pop(0)))
    monkeypatch.setattr(refused, "remove", AsyncMock())
    monkeypatch.setattr(refused, "release", AsyncMock())

    with counting(PUBLISHED) as counted:
        async with rhythm.running():
            pass

    assert counted == {("one",): 2}


async def test_each_attempt_without_a_broker_is_a_retry(
    rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "RETRY_SECONDS", 0.0)
    rhythm.outbox.found = [A_ROW]
    rhythm.broker.refuses = [KafkaConnectionError(), KafkaConnectionError()]

    with counting(PUBLISHED) as counted, counting(RETRIES) as retries:
        async with rhythm.running():
            pass

    assert (counted, retries) == ({("counters",): 1}, {(): 2})


class Signs:
    """The clock of a relay, and the age of its loop's sign of life at each renewal of its lease."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.ages: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    async def renew(self, _: object, beat_seconds: float) -> None:
        self.ages.append(beat_seconds)

    async def work_a_minute(self, *_: object) -> Sequence[Any]:
        """Take a minute on the clock, and let the lease be renewed meanwhile."""
        self.now += 60
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return ()


@pytest.fixture
def signs(monkeypatch: pytest.MonkeyPatch) -> Signs:
    signs = Signs()
    monkeypatch.setattr(Lease, "renew", lambda _, *arguments: signs.renew(*arguments))
    monkeypatch.setattr(Lease, "store", AsyncMock())
    monkeypatch.setattr(relay, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.0)
    monkeypatch.setattr(relay, "time", signs)
    return signs


@asynccontextmanager
async def renewing(active: ActiveRelay) -> AsyncIterator[None]:
    task = asyncio.create_task(active.keep_lease())
    try:
        yield
    finally:
        task.cancel()


async def test_a_loop_that_hangs_gives_no_sign_of_life_though_the_lease_is_renewed(
    rhythm: Rhythm, signs: Signs
) -> None:
    """The negative control is its first half: a quiet relay gives one with each poll."""
    async with rhythm.running() as active, renewing(active):
        signs.now += 60
        await rhythm.notify()
        quiet = signs.ages[-1]

        rhythm.outbox.found = [A_ROW]
        rhythm.broker.responds.clear()
        await rhythm.notify()
        signs.now += 60
        await rhythm.settle()
        hanging = signs.ages[-1]

    assert (quiet, hanging) == (0, 60)


def let_it_page(rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of several pages."""
    monkeypatch.setattr(outbox, "read_page", AsyncMock(side_effect=[A_ROW, A_ROW, A_ROW, ()]))
    rhythm.outbox.found = [None]


def let_it_pass_over(rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of several pages, all of a partition that takes no records."""
    pages = [A_ROW, A_ROW, A_ROW]

    async def read_page(*_: object) -> Sequence[Any]:
        if not pages:
            return ()
        await rhythm.broker.publish((), None)
        return pages.pop()

    monkeypatch.setattr(outbox, "read_page", read_page)
    monkeypatch.setattr(BehindPartitions, "leave_out", lambda *_: ())
    rhythm.outbox.found = [None]


def let_it_rejoin(rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that takes records again, and still lacks several pages."""
    pages = AsyncMock(side_effect=[A_ROW, A_ROW, A_ROW, ()])
    level: list[Any] = [
        SimpleNamespace(target=("counters", 0), read_next=pages, note_sent=lambda _: None)
    ]
    monkeypatch.setattr(BehindPartitions, "select", lambda *_, **__: list(level))
    monkeypatch.setattr(BehindPartitions, "remove", lambda _, each: level.remove(each))


def let_it_redrive(rhythm: Rhythm, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parked stream of which a lot waits."""
    waiting = [*[([1], [a_row("counters")])] * 3, ([], [])]
    refused: Any = RefusedStreams
    monkeypatch.setattr(refused, "__bool__", lambda _: bool(waiting))
    monkeypatch.setattr(refused, "find_requested", AsyncMock(return_value=[new_id()]))
    monkeypatch.setattr(refused, "read_waiting", AsyncMock(side_effect=lambda _: waiting.pop(0)))
    monkeypatch.setattr(refused, "remove", AsyncMock())
    monkeypatch.setattr(refused, "release", AsyncMock())


@pytest.mark.parametrize(
    "give_work", [let_it_page, let_it_pass_over, let_it_rejoin, let_it_redrive]
)
async def test_a_loop_that_has_a_lot_to_do_gives_a_sign_of_life_with_each_page(
    rhythm: Rhythm, signs: Signs, monkeypatch: pytest.MonkeyPatch, give_work: Any
) -> None:
    """Three pages of a minute each: without one it would look as if it hung."""
    async with rhythm.running() as active, renewing(active):
        monkeypatch.setattr(rhythm.broker, "publish", signs.work_a_minute)
        give_work(rhythm, monkeypatch)
        await rhythm.notify()

    assert (signs.now, max(signs.ages)) == (1_180, 60)
