"""Outbox to Kafka: nothing lost, each key in order, repeats only after a failure.

One relay of a service is active, others stand by. It reads what became visible (`outbox`), sends
it and waits for the acknowledgements (`kafka`), and only then moves its progress, which is written
behind: after a failure it publishes again what the last checkpoint did not know. A partition that
takes no records falls behind alone (`behind`), as a stream does that is refused (`refused`).
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from uuid import UUID

import asyncpg
from aiokafka.errors import KafkaError

from shared.messaging.kafka import NotAcknowledged, Publisher
from shared.messaging.log_ends import RecordsLost
from shared.messaging.wire import RecordBatch, Target
from shared.outbox import lease, outbox
from shared.outbox.behind import Behind, BehindPartitions
from shared.outbox.lease import ForeignCheckpoint, Lease, LeaseLost, Standby
from shared.outbox.outbox import OutboxRow, RelayCheckpoint, Snapshot
from shared.outbox.refused import PERMANENT, RefusedStreams
from shared.outbox.relay_trace import BatchTrace
from shared.runtime import failpoints, metrics, postgres, telemetry
from shared.runtime.brokers import Brokers
from shared.runtime.failpoints import Failpoint
from shared.runtime.logs import because
from shared.runtime.processes import wait

R = TypeVar("R")
Publish = Callable[[Sequence[OutboxRow]], Awaitable[None]]

log = logging.getLogger(__name__)

ROWS_MAX = 4_000
"""In a poll, and in a page of a large window; two pages are in memory at a time."""
IDLE_SECONDS_MAX = 0.1
"""How late a commit is noticed when its notification was lost."""
POLL_SECONDS_MIN = 0.005
"""Between the beginnings of two polls, unless more rows are known to wait: the commits of that time
share a poll and a batch."""
CHECKPOINT_SECONDS = 0.1
"""How much is published twice after a crash of this process, in time; and what was published while
spans were exported."""
EXPORT_SECONDS_MAX = 3.0
"""How long a checkpoint waits for spans to be exported: longer than an export that fails."""
READ_SECONDS_MAX = 300.0
"""Time limit of a read of the outbox: the begin of a window of 100 M rows has to be found."""
STANDBY_SECONDS = 0.5
RETRY_SECONDS = 1.0
PASSES = 2
"""Over what a partition lacks: the second one has what the others got during the first."""
TIDY_SECONDS = 60.0
"""How often partitions of the outbox are created ahead and dropped behind."""
ACKNOWLEDGE_SECONDS_MAX = 5.0
"""How long an acknowledgement may take before the relay reports that it is not ready."""
GRACE_SECONDS = 5.0
"""How long a stop waits for the batch in hand; the broker may be unavailable."""

PUBLISHED = metrics.Counter(
    "hometown.relay.records", "{record}", "Records that the broker has acknowledged", ["topic"]
)
DELAY = metrics.Histogram(
    "hometown.relay.delay",
    "s",
    "From the recording of the oldest event of a batch to its acknowledgement",
)
RETRIES = metrics.Counter(
    "hometown.relay.retries", "{retry}", "Attempts to publish while no broker was reached"
)
ACTIVE = metrics.Gauge(
    "hometown.relay.active", "1", "Whether the relay holds the lease: 1, or 0 while it stands by"
)

CONNECTION_SETTINGS = {
    "timezone": "UTC",
    "jit": "off",  # the poll is a query of well under a millisecond
    "plan_cache_mode": "force_generic_plan",  # planning again would take longer than the poll
    "synchronous_commit": "off",  # a lost checkpoint only means to publish again
}


class Relay:
    """Publishes one service's outbox while it holds the lease.

    `notified` is set by a notification; `stopping` asks for an end after the batch in hand.
    `fence` is called when another relay may be active: it has to end the process at once,
    because the Kafka client would continue to retry what it holds.
    """

    def __init__(
        self,
        dsn: str,
        brokers: Brokers,
        *,
        name: str,
        owner: UUID,
        notified: asyncio.Event,
        stopping: asyncio.Event,
        fence: Callable[[], None],
    ) -> None:
        self._dsn = dsn
        self._brokers = brokers
        self._name = name
        self._owner = owner
        self._notified = notified
        self._stopping = stopping
        self._fence = fence
        self.connected = False
        self._active: ActiveRelay | None = None

    async def run(self) -> None:
        """Stand by, take the lease, publish until asked to stop.

        Raises:
            ForeignCheckpoint, Restored, RecordsLost: an operator has to decide.
        """
        with ACTIVE.read_by(lambda: {(): self._active is not None}):
            while not self._stopping.is_set():
                try:
                    await self._connect_and_publish()
                except* postgres.UNAVAILABLE as group:
                    log.warning("the database is unavailable", extra=because(group))
                    await wait(self._stopping, RETRY_SECONDS)

    async def _connect_and_publish(self) -> None:
        async with (
            self._connection("read", READ_SECONDS_MAX) as reader,
            self._connection("lease", lease.LEASE_SECONDS) as writer,
            self._connection("tidy", lease.LEASE_SECONDS) as tidier,
        ):
            self.connected = True
            try:
                taken = await self._take_lease(writer)
                if taken is not None:
                    log.info("the relay is active", extra={"epoch": taken[0].epoch})
                    await self._publish_with(reader, writer, tidier, *taken)
            finally:
                self.connected = False

    @asynccontextmanager
    async def _connection(
        self, purpose: str, seconds_max: float
    ) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(
            self._dsn,
            timeout=lease.LEASE_SECONDS,
            command_timeout=seconds_max,
            server_settings={**CONNECTION_SETTINGS, "application_name": f"{self._name}-{purpose}"},
        )
        try:
            yield connection
        finally:
            connection.terminate()  # a polite end would wait for a server that may be unavailable

    async def _take_lease(self, writer: asyncpg.Connection) -> tuple[Lease, RelayCheckpoint] | None:
        """The lease as soon as it is free; None when a stop was asked for first."""
        standby = Standby(self._owner)
        while not self._stopping.is_set():
            if taken := await standby.acquire(writer):
                return taken
            await wait(self._stopping, STANDBY_SECONDS)
        return None

    async def _publish_with(
        self,
        reader: asyncpg.Connection,
        writer: asyncpg.Connection,
        tidier: asyncpg.Connection,
        held: Lease,
        progress: RelayCheckpoint,
    ) -> None:
        publisher = Publisher(self._brokers, self._name, progress.ends)
        active = ActiveRelay(
            reader,
            writer,
            held,
            progress,
            publisher,
            self._notified,
            name=self._name,
            connect=lambda: self._connection("behind", READ_SECONDS_MAX),
        )
        self._active = active
        try:
            async with asyncio.TaskGroup() as tasks:
                helping = [
                    tasks.create_task(active.keep_lease()),
                    tasks.create_task(active.recover()),
                    tasks.create_task(tidy(tidier)),
                ]
                publishing = tasks.create_task(active.publish_until(self._stopping))
                await self._stopping.wait()
                await asyncio.wait([publishing], timeout=GRACE_SECONDS)
                for task in (publishing, *helping):
                    task.cancel()
            await publisher.close()  # first, so that nothing of ours arrives among a successor's
            await active.hand_over()
        except* RecordsLost as group:
            await active.report_loss(RecordsLost.first_of(group))
            raise
        except* (LeaseLost, *postgres.UNAVAILABLE) as group:
            # A process that was frozen may notice a query's time-out before the lost lease.
            if group.subgroup(LeaseLost) or held.is_over:
                self._fence()
            raise
        finally:
            self._active = None
            await publisher.close()

    @property
    def obstacle(self) -> str | None:
        """Why this relay is not ready; None when it is."""
        if not self.connected:
            return "the database is unavailable"
        return self._active.obstacle if self._active else None


class ActiveRelay:
    """The relay while it holds the lease."""

    def __init__(
        self,
        reader: asyncpg.Connection,
        writer: asyncpg.Connection,
        held: Lease,
        progress: RelayCheckpoint,
        publisher: Publisher,
        notified: asyncio.Event,
        *,
        name: str,
        connect: Callable[[], AbstractAsyncContextManager[asyncpg.Connection]],
    ) -> None:
        self._reader = reader
        self._reading = asyncio.Lock()
        self._connect = connect
        self._writer = writer
        self._lease = held
        self._progress = progress
        self._stored = progress
        self._publisher = publisher
        self._notified = notified
        self._refused = RefusedStreams(reader, self._reading, name, held)
        self._behind = BehindPartitions()
        self._beat_at = time.monotonic()
        """When the publishing loop last came round, or had a page acknowledged."""
        self._refusal: str | None = None
        self._sending_since: float | None = None
        self._has_spans = False
        """Whether some have ended since the last export of all began."""
        self._exporting: Export | None = None

    async def keep_lease(self) -> None:
        """Store progress behind, and renew the lease."""
        renewed_at = time.monotonic()
        while True:
            await asyncio.sleep(CHECKPOINT_SECONDS)
            await self._store_exported()
            if time.monotonic() - renewed_at >= lease.RENEW_SECONDS:
                renewed_at = time.monotonic()
                await self._lease.renew(self._writer, renewed_at - self._beat_at)

    async def _store_exported(self) -> None:
        """Store how far it has published, once the spans of that are exported.

        A relay that is killed publishes again what the checkpoint does not know, with the same
        spans; so what it knows must leave no gap in a trace. A collector that does not respond
        delays one checkpoint: then nothing is tried until it has taken spans again.
        """
        if self._exporting is not None:
            if not self._exporting.is_over:
                return
            progress, self._exporting = self._exporting.progress, None
        elif self._has_spans:
            self._has_spans = False
            self._exporting = Export(self._behind.limit(self._progress))
            return
        else:
            progress = self._behind.limit(self._progress)
        await self._store_checkpoint(progress)

    async def _store_checkpoint(self, progress: RelayCheckpoint) -> None:
        if progress != self._stored:
            await self._lease.store(self._writer, progress)
            self._stored = progress
            failpoints.hit(Failpoint.CHECKPOINT_STORED)

    async def publish_until(self, stopping: asyncio.Event) -> None:
        """Publish what becomes visible; at the end poll once more for what was just committed.

        Raises:
            ForeignCheckpoint: the outbox has rows of another PostgreSQL cluster.
            RecordsLost: the broker has lost what it acknowledged.
        """
        if await outbox.is_ahead(self._reader):
            raise ForeignCheckpoint
        await self._refused.load()
        unknown = await self._until_reached(self._publisher.require_acknowledged)
        self._leave_behind(unknown)
        while not stopping.is_set():
            # First, so that a notification from now on leads to another poll.
            self._notified.clear()
            polled_at = self._beat_at = time.monotonic()
            if self._refused:
                await self._redrive()
            if self._progress.target is None:
                await self._rejoin()
            if not await self._publish_new():
                await wait(self._notified, IDLE_SECONDS_MAX)
                await asyncio.sleep(polled_at + POLL_SECONDS_MIN - time.monotonic())
        await self._publish_new()

    async def _publish_new(self) -> bool:
        """One poll of the outbox, or one window; whether more rows can be waiting already."""
        if self._progress.target is not None:
            await self._publish_window()
            return True
        async with self._reading:
            snapshot, rows = await outbox.poll(self._reader, self._progress.published, ROWS_MAX)
        if rows is None:
            async with self._reading:
                floor = await outbox.read_window_floor(self._reader, self._progress.published)
            self._progress = replace(self._progress, target=snapshot, floor=floor)
            return True
        if not rows:
            return False  # the old snapshot stays as good; a new one each time would be stored
        await self._send(rows)
        self._progress = self._published_up_to(snapshot)
        failpoints.hit(Failpoint.PROGRESS_MADE)
        return False  # a commit since then has sent its notification, or is found when idle

    async def _publish_window(self) -> None:
        """A window too large for one answer, page by page; resumable at the last page sent.

        The next page is read while one is sent.
        """
        rows = await self._read_page(self._progress)
        while rows:
            sent = replace(self._progress, floor=rows[-1].position)
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(self._read_page(sent))
                tasks.create_task(self._send(rows))
            rows, self._progress = following.result(), replace(sent, ends=self._publisher.ends)
            failpoints.hit(Failpoint.PAGE_ACKNOWLEDGED)
        assert self._progress.target is not None
        self._progress = self._published_up_to(self._progress.target)

    def _published_up_to(self, snapshot: str) -> RelayCheckpoint:
        return RelayCheckpoint(Snapshot.parse(snapshot), ends=self._publisher.ends)

    async def _read_page(self, progress: RelayCheckpoint) -> Sequence[OutboxRow]:
        async with self._reading:
            return await outbox.read_page(self._reader, progress, ROWS_MAX)

    async def _send(self, rows: Sequence[OutboxRow]) -> None:
        """Publish rows, for as long as a broker has to be reached and the lease holds."""
        failpoints.hit(Failpoint.ROWS_READ)
        if rows := self._behind.leave_out(rows):
            publish = partial(self._publish, self._publisher)
            self._leave_behind(await self._deliver(partial(self._until_reached, publish), rows))
            failpoints.hit(Failpoint.RECORDS_ACKNOWLEDGED)
        self._beat_at = time.monotonic()

    def _leave_behind(self, unavailable: Mapping[Target, KafkaError]) -> None:
        """Go on without partitions, which have what was published until now."""
        for target, error in unavailable.items():
            self._behind.add(target, self._progress, repr(error))

    async def _deliver(
        self, publish: Publish, rows: Sequence[OutboxRow]
    ) -> dict[Target, KafkaError]:
        """Publish rows; those of parked streams wait. Returns the partitions that did not take
        theirs: nothing was published after that.

        A record that is refused permanently is found by halves, and its stream is parked. What goes
        to its partition is sent again: duplicates, which consumers drop, but no loss and no
        inversion.
        """
        rows = await self._refused.hold_back(rows)
        unavailable: dict[Target, KafkaError] = {}
        try:
            if rows:
                await publish(rows)
        except NotAcknowledged as refusal:
            for target, error in refusal.errors.items():
                refused = [row for row in rows if row.target == target]
                if not isinstance(error, PERMANENT):
                    unavailable[target] = error
                elif len(refused) == 1:
                    await self._refused.park(refused[0], error)
                else:
                    middle = len(refused) // 2
                    unavailable |= await self._deliver(publish, refused[:middle])
                    if target not in unavailable:
                        unavailable |= await self._deliver(publish, refused[middle:])
        return unavailable

    async def _publish(self, publisher: Publisher, rows: Sequence[OutboxRow]) -> None:
        """Raises NotAcknowledged, and KafkaError when no broker is reached."""
        self._lease.check()
        began_at = time.monotonic()
        trace = BatchTrace(rows)
        try:
            async with trace:
                trace.batches = await publisher.publish(trace.records(), hit_handed_over)
        except NotAcknowledged as refusal:
            report_published(refusal.batches, time.monotonic() - began_at)
            raise
        finally:
            self._has_spans |= trace.is_recorded
        report_published(trace.batches, time.monotonic() - began_at)
        recorded_at = min(row.record.milliseconds for row in rows) / 1000
        DELAY.record(max(0.0, time.time() - recorded_at))

    async def _until_reached(self, call: Callable[..., Awaitable[R]], *arguments: object) -> R:
        """Call until a broker is reached: while none is, all partitions wait.

        Raises:
            NotAcknowledged: some partitions did not take their records, though a broker answers.
            LeaseLost: another relay may be active.
        """
        self._sending_since = time.monotonic()
        try:
            while True:
                self._lease.check()
                try:
                    return await call(*arguments)
                except NotAcknowledged:
                    raise
                except KafkaError as error:
                    RETRIES.add(1)
                    self._refusal = repr(error)
                    log.warning("the broker takes no records", extra=because(error))
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._refusal = self._sending_since = None

    async def recover(self) -> None:
        """Try partitions that are behind again, on a connection and with a producer that nothing
        else waits for. Never returns."""
        publisher = self._publisher.create_second()
        try:
            while True:
                await asyncio.sleep(RETRY_SECONDS)
                if waiting := self._behind.select(is_level=False):
                    async with self._connect() as reader:
                        for behind in await self._try_first_rows(publisher, reader, waiting):
                            await self._catch_up(publisher, reader, behind)
        finally:
            await publisher.close()

    async def _try_first_rows(
        self, publisher: Publisher, reader: asyncpg.Connection, waiting: Sequence[Behind]
    ) -> Sequence[Behind]:
        """Send partitions the first rows that they lack, all at once: each can take a time-out.

        Returns those that have taken them.

        Raises:
            RecordsLost, LeaseLost: as `publish_until`.
        """
        rows_max = max(ROWS_MAX // len(waiting), 1)
        reasons: dict[Target, KafkaError] = {}
        pages: dict[Target, Sequence[OutboxRow]] = {}
        try:
            reasons |= await publisher.require_acknowledged([each.target for each in waiting])
            for each in waiting:
                if each.target not in reasons:
                    pages[each.target] = await each.read_next(reader, self._goal, rows_max)
            rows = [row for page in pages.values() for row in page]
            reasons |= await self._deliver(partial(self._publish, publisher), rows)
        except KafkaError as error:
            reasons = dict.fromkeys((each.target for each in waiting), error)
        for each in waiting:
            if each.target in reasons:
                each.note_refused(repr(reasons[each.target]))
            else:
                each.note_sent(pages[each.target])
        return [each for each in waiting if each.target not in reasons]

    async def _catch_up(
        self, publisher: Publisher, reader: asyncpg.Connection, behind: Behind
    ) -> None:
        """Send a partition what it still lacks. Raises RecordsLost, and LeaseLost."""
        try:
            for _ in range(PASSES):
                goal = self._goal
                while rows := await behind.read_next(reader, goal, ROWS_MAX):
                    await self._send_missing(publisher, behind, rows)
            behind.is_level = True
        except KafkaError as error:
            behind.note_refused(repr(error))

    @property
    def _goal(self) -> Snapshot:
        """What is visible in it is published when the open window, if there is one, is done."""
        target = self._progress.target
        return self._progress.published if target is None else Snapshot.parse(target)

    async def _rejoin(self) -> None:
        """Go on with the partitions that are level, after what the others had meanwhile."""
        for behind in self._behind.select(is_level=True):
            try:
                while rows := await self._read_missing(behind):
                    await self._send_missing(self._publisher, behind, rows)
                    self._beat_at = time.monotonic()
                self._behind.remove(behind)
            except KafkaError as error:
                behind.note_refused(repr(error))

    async def _read_missing(self, behind: Behind) -> Sequence[OutboxRow]:
        async with self._reading:
            return await behind.read_next(self._reader, self._goal, ROWS_MAX)

    async def _send_missing(
        self, publisher: Publisher, behind: Behind, rows: Sequence[OutboxRow]
    ) -> None:
        """Raises KafkaError: the partition did not take all of them."""
        unavailable = await self._deliver(partial(self._publish, publisher), rows)
        if behind.target in unavailable:
            raise unavailable[behind.target]
        behind.note_sent(rows)

    async def _redrive(self) -> None:
        """Send what waits of the streams that an operator wants to continue."""
        for stream_id in await self._refused.find_requested():
            await self._redrive_stream(stream_id)

    async def _redrive_stream(self, stream_id: UUID) -> None:
        while (waiting := await self._refused.read_waiting(stream_id))[0]:
            versions, records = waiting
            if any(record.target in self._behind for record in records):
                return  # its request stays, until its partition takes records
            began_at = time.monotonic()
            try:
                publish = partial(self._publisher.publish, records, hit_handed_over)
                batches = await self._until_reached(publish)
            except NotAcknowledged as refusal:
                for target, error in refusal.errors.items():
                    if isinstance(error, PERMANENT):
                        await self._refused.keep(stream_id, error)
                    else:
                        self._leave_behind({target: error})
                return
            report_published(batches, time.monotonic() - began_at)
            await self._refused.remove(stream_id, versions)
            self._beat_at = time.monotonic()
        await self._refused.release(stream_id)

    @property
    def obstacle(self) -> str | None:
        """Why records are not acknowledged; None when they are."""
        if self._refusal is not None:
            return f"the broker does not take records: {self._refusal}"
        if self._sending_since is not None:
            seconds = time.monotonic() - self._sending_since
            if seconds > ACKNOWLEDGE_SECONDS_MAX:
                return f"the broker has not acknowledged records for {seconds:.0f} s"
        return self._behind.obstacle

    async def hand_over(self) -> None:
        """Store the last progress and let a standby take over at once. The spans of it are exported
        when the process ends."""
        await self._store_checkpoint(self._behind.limit(self._progress))
        await self._lease.release(self._writer)
        failpoints.hit(Failpoint.LEASE_RELEASED)

    async def report_loss(self, loss: RecordsLost) -> None:
        """Let no relay publish before a replay."""
        await self._lease.report_loss(self._writer, loss)


class Export:
    """The export of all spans that have ended, and the progress of the relay that they cover."""

    def __init__(self, progress: RelayCheckpoint) -> None:
        self.progress = progress
        self._task = asyncio.create_task(asyncio.to_thread(telemetry.flush))
        self._ends_at = time.monotonic() + EXPORT_SECONDS_MAX

    @property
    def is_over(self) -> bool:
        return self._task.done() or time.monotonic() >= self._ends_at


async def tidy(connection: asyncpg.Connection) -> None:
    """Look after the outbox's partitions, on a connection that no renewal waits for."""
    while True:
        await outbox.keep_partitions(connection, datetime.now(UTC))
        await asyncio.sleep(TIDY_SECONDS)


def report_published(batches: Sequence[RecordBatch], seconds: float) -> None:
    """Count the records that were acknowledged, and write a line with their offsets.

    It is one line for all: to name each record, a relay would have to take its headers apart, which
    takes as long as all the rest.
    """
    for batch in batches:
        PUBLISHED.add(batch.count, batch.topic)
    if batches:
        records = sum(batch.count for batch in batches)
        about = {"records": records, "offsets": to_ranges(batches), "seconds": seconds}
        log.info("published", extra=about)


def to_ranges(batches: Iterable[RecordBatch]) -> dict[str, dict[str, list[int]]]:
    """[first, end] by topic and partition, end not included; without repeats, whose offsets the
    broker does not know any more."""
    ranges: dict[str, dict[str, list[int]]] = {}
    for batch in batches:
        if batch.base_offset >= 0:
            end = batch.base_offset + batch.count
            known = ranges.setdefault(batch.topic, {})
            known.setdefault(str(batch.partition), [batch.base_offset, end])[1] = end
    return ranges


def hit_handed_over() -> None:
    failpoints.hit(Failpoint.RECORDS_HANDED_OVER)
