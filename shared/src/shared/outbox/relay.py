"""Outbox to Kafka: nothing lost, each key in order, repeats only after a failure.

One relay of a service is active, others stand by. It reads what became visible (`outbox`), sends
it and waits for the acknowledgements (`kafka`), and only then moves its progress, which is written
behind: after a failure it publishes again what the last checkpoint did not know.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import asyncpg
from aiokafka.errors import KafkaError

from shared.messaging.kafka import Publisher
from shared.messaging.log_ends import RecordsLost
from shared.outbox import lease, outbox
from shared.outbox.lease import ForeignCheckpoint, Lease, LeaseLost, Standby
from shared.outbox.outbox import OutboxRow, RelayCheckpoint, Snapshot
from shared.outbox.refused import PERMANENT, RefusedStreams
from shared.outbox.relay_trace import BatchTrace
from shared.runtime import failpoints, metrics, postgres, telemetry
from shared.runtime.brokers import Brokers
from shared.runtime.failpoints import Failpoint
from shared.runtime.processes import wait

log = logging.getLogger(__name__)

ROWS_MAX = 4_000
"""In a poll, and in a page of a large window; two pages are in memory at a time."""
IDLE_SECONDS_MAX = 0.1
"""How late a commit is noticed when its notification was lost."""
POLL_SECONDS_MIN = 0.02
"""Between the beginnings of two polls, unless more rows are known to wait: the commits of that time
share a poll and a batch."""
CHECKPOINT_SECONDS = 0.1
"""How much is published twice after a crash of this process, in time."""
EXPORT_SECONDS_MAX = 0.25
"""How long a checkpoint waits for the export of spans."""
READ_SECONDS_MAX = 300.0
"""Time limit of a read of the outbox: the begin of a window of 100 M rows has to be found."""
STANDBY_SECONDS = 0.5
RETRY_SECONDS = 1.0
TIDY_SECONDS = 60.0
"""How often partitions of the outbox are created ahead and dropped behind."""
ACKNOWLEDGE_SECONDS_MAX = 5.0
"""How long an acknowledgement may take before the relay reports that it is not ready."""
GRACE_SECONDS = 5.0
"""How long a stop waits for the batch in hand; the broker may be unavailable."""

PUBLISHED = metrics.Count(
    "hometown.relay.records", "{record}", "Records that the broker has acknowledged"
)
DELAY = metrics.measure(
    "hometown.relay.delay",
    "s",
    "From the recording of a batch's first event to its acknowledgement",
)
RETRIES = metrics.Count("hometown.relay.retries", "{retry}", "Batches that the broker did not take")

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
        while not self._stopping.is_set():
            try:
                await self._connect_and_publish()
            except* postgres.UNAVAILABLE as group:
                log.warning("database is unavailable, retrying: %s", group.exceptions[0])
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
                    log.info("active in epoch %d", taken[0].epoch)
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
            reader, writer, held, progress, publisher, self._notified, name=self._name
        )
        self._active = active
        try:
            async with asyncio.TaskGroup() as tasks:
                helping = [tasks.create_task(active.keep_lease()), tasks.create_task(tidy(tidier))]
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
    def is_active(self) -> bool:
        """Whether it holds the lease."""
        return self._active is not None

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
    ) -> None:
        self._reader = reader
        self._reading = asyncio.Lock()
        self._writer = writer
        self._lease = held
        self._progress = progress
        self._stored = progress
        self._publisher = publisher
        self._notified = notified
        self._refused = RefusedStreams(reader, self._reading, name, held)
        self._refusal: str | None = None
        self._sending_since: float | None = None
        self._has_spans = False
        self._exporting: asyncio.Task[bool] | None = None

    async def keep_lease(self) -> None:
        """Store progress behind, and renew the lease."""
        renewed_at = time.monotonic()
        while True:
            await asyncio.sleep(CHECKPOINT_SECONDS)
            await self._store()
            if time.monotonic() - renewed_at >= lease.RENEW_SECONDS:
                renewed_at = time.monotonic()
                await self._lease.renew(self._writer)

    async def _store(self) -> None:
        progress = self._progress
        if progress != self._stored:
            await self._export_spans()
            await self._lease.store(self._writer, progress)
            self._stored = progress
            failpoints.hit(Failpoint.CHECKPOINT_STORED)

    async def _export_spans(self) -> None:
        """Export the spans of what was published before the checkpoint says that it was.

        After a crash what was published since the checkpoint is published again, with the same
        spans: otherwise each crash would leave traces with a gap. A collector that does not respond
        delays no checkpoint by more than EXPORT_SECONDS_MAX, and gets one request at a time.
        """
        if self._exporting is not None and self._exporting.done():
            self._exporting = None
        if self._has_spans and self._exporting is None:
            self._has_spans = False
            self._exporting = asyncio.create_task(asyncio.to_thread(telemetry.flush))
        if self._exporting is not None:
            await asyncio.wait([self._exporting], timeout=EXPORT_SECONDS_MAX)

    async def publish_until(self, stopping: asyncio.Event) -> None:
        """Publish what becomes visible; at the end poll once more for what was just committed.

        Raises:
            ForeignCheckpoint: the outbox has rows of another PostgreSQL cluster.
            RecordsLost: the broker has lost what it acknowledged.
        """
        if await outbox.is_ahead(self._reader):
            raise ForeignCheckpoint
        await self._refused.load()
        await self._until_acknowledged(self._publisher.require_acknowledged, 0)
        while not stopping.is_set():
            # First, so that a notification from now on leads to another poll.
            self._notified.clear()
            polled_at = time.monotonic()
            if self._refused:
                await self._redrive()
            if not await self._publish_new():
                await wait(self._notified, IDLE_SECONDS_MAX)
                await asyncio.sleep(polled_at + POLL_SECONDS_MIN - time.monotonic())
        await self._publish_new()

    async def _publish_new(self) -> bool:
        """One poll of the outbox, or one window; whether more rows can be waiting already."""
        if self._progress.target is not None:
            await self._publish_window()
            return True
        snapshot, rows = await outbox.poll(self._reader, self._progress.published, ROWS_MAX)
        if rows is None:
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
        """Publish rows, for as long as it takes and the lease holds; parked streams wait.

        After a refusal all of them are sent again: duplicates, which consumers drop, but no loss
        and no inversion. A record that is refused permanently is found by halves, and its stream
        is parked.
        """
        failpoints.hit(Failpoint.ROWS_READ)
        rows = await self._refused.hold_back(rows)
        if not rows:
            return
        try:
            await self._until_acknowledged(partial(self._publish, rows), len(rows))
        except PERMANENT as error:
            if len(rows) == 1:
                await self._refused.park(rows[0], error)
                return
            middle = len(rows) // 2
            await self._send(rows[:middle])
            await self._send(rows[middle:])
        else:
            count_published(rows)
        failpoints.hit(Failpoint.RECORDS_ACKNOWLEDGED)

    async def _publish(self, rows: Sequence[OutboxRow]) -> None:
        with BatchTrace(rows) as trace:
            trace.batches = await self._publisher.publish(trace.records(), hit_handed_over)
        self._has_spans |= any(row.traceparent for row in rows)

    async def _until_acknowledged(self, send: Callable[[], Awaitable[object]], count: int) -> None:
        """Send until the broker has taken all records. Raises LeaseLost, and PERMANENT."""
        self._sending_since = time.monotonic()
        try:
            while True:
                self._lease.check()
                try:
                    await send()
                    return
                except PERMANENT:
                    raise
                except KafkaError as error:
                    RETRIES.add(1)
                    self._refusal = repr(error)
                    log.warning("broker did not take %d records, retrying: %r", count, error)
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._refusal = self._sending_since = None

    async def _redrive(self) -> None:
        """Send what waits of the streams that an operator wants to continue."""
        for stream_id in await self._refused.find_requested():
            try:
                while (waiting := await self._refused.read_waiting(stream_id))[0]:
                    versions, records = waiting
                    publish = partial(self._publisher.publish, records, hit_handed_over)
                    await self._until_acknowledged(publish, len(records))
                    await self._refused.remove(stream_id, versions)
                await self._refused.release(stream_id)
            except PERMANENT as error:
                await self._refused.keep(stream_id, error)

    @property
    def obstacle(self) -> str | None:
        """Why records are not acknowledged; None when they are."""
        if self._refusal is not None:
            return f"the broker does not take records: {self._refusal}"
        if self._sending_since is not None:
            seconds = time.monotonic() - self._sending_since
            if seconds > ACKNOWLEDGE_SECONDS_MAX:
                return f"the broker has not acknowledged records for {seconds:.0f} s"
        return None

    async def hand_over(self) -> None:
        """Store the last progress and let a standby take over at once."""
        await self._store()
        await self._lease.release(self._writer)
        failpoints.hit(Failpoint.LEASE_RELEASED)

    async def report_loss(self, loss: RecordsLost) -> None:
        """Let no relay publish before a replay."""
        await self._lease.report_loss(self._writer, loss)


async def tidy(connection: asyncpg.Connection) -> None:
    """Look after the outbox's partitions, on a connection that no renewal waits for."""
    while True:
        await outbox.keep_partitions(connection, datetime.now(UTC))
        await asyncio.sleep(TIDY_SECONDS)


def count_published(rows: Sequence[OutboxRow]) -> None:
    """Count acknowledged rows by topic, and how long the first of them has waited."""
    for topic, number in Counter(row.topic for row in rows).items():
        PUBLISHED.add(number, {"topic": topic})
    DELAY.record(max(0.0, time.time() - rows[0].milliseconds / 1_000))


def hit_handed_over() -> None:
    failpoints.hit(Failpoint.RECORDS_HANDED_OVER)
