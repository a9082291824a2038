"""Outbox to Kafka: nothing lost, each key in order, repeats only after a failure.

One relay of a service is active, others stand by. It reads what became visible (`outbox`), sends
it and waits for the acknowledgements (`kafka`), and only then moves its progress, which is written
behind: after a failure it publishes again what the last checkpoint did not know.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import UUID

import asyncpg
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from shared import kafka, lease, outbox, postgres
from shared.lease import Lease, LeaseLost
from shared.outbox import OutboxRow, Progress, Snapshot
from shared.processes import wait
from shared.relay_trace import BatchTrace

log = logging.getLogger(__name__)

ROWS_MAX = 4_000
"""Rows in memory at a time; the size of a poll and of a page of a large window."""
IDLE_SECONDS_MAX = 0.1
"""How late a commit is noticed when the doorbell was lost."""
CHECKPOINT_SECONDS = 0.1
"""How much is published twice after a crash of this process, in time."""
STANDBY_SECONDS = 0.5
RETRY_SECONDS = 1.0
GRACE_SECONDS = 5.0
"""How long a stop waits for the batch in hand; the broker may be away."""

CONNECTION_SETTINGS = {
    "timezone": "UTC",
    "jit": "off",  # the poll is a query of well under a millisecond
    "plan_cache_mode": "force_custom_plan",  # a generic plan may scan the whole table
    "synchronous_commit": "off",  # a lost checkpoint only means to publish again
}


class Relay:
    """Publishes one service's outbox while it holds the lease.

    `rang` is set by the doorbell; `stopping` asks for an end after the batch in hand. `fence` is
    called when another relay may be active: it has to end the process at once, because the Kafka
    client would go on to retry what it holds.
    """

    def __init__(
        self,
        dsn: str,
        bootstrap_servers: str,
        *,
        name: str,
        owner: UUID,
        rang: asyncio.Event,
        stopping: asyncio.Event,
        fence: Callable[[], None],
    ) -> None:
        self._dsn = dsn
        self._bootstrap_servers = bootstrap_servers
        self._name = name
        self._owner = owner
        self._rang = rang
        self._stopping = stopping
        self._fence = fence
        self.connected = False
        self._active: ActiveRelay | None = None

    async def run(self) -> None:
        """Stand by, take the lease, publish until asked to stop.

        Raises:
            ForeignCheckpoint: an operator has to look.
        """
        while not self._stopping.is_set():
            try:
                await self._connect_and_publish()
            except* postgres.AWAY as group:
                log.warning("database is away, trying again: %s", group.exceptions[0])
                await wait(self._stopping, RETRY_SECONDS)

    async def _connect_and_publish(self) -> None:
        async with self._connection("read") as reader, self._connection("lease") as writer:
            self.connected = True
            try:
                taken = await self._take_lease(writer)
                if taken is not None:
                    log.info("active in epoch %d", taken[0].epoch)
                    await self._publish_with(reader, writer, *taken)
            finally:
                self.connected = False

    @asynccontextmanager
    async def _connection(self, purpose: str) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(
            self._dsn,
            timeout=lease.LEASE_SECONDS,
            command_timeout=lease.LEASE_SECONDS,
            server_settings={**CONNECTION_SETTINGS, "application_name": f"{self._name}-{purpose}"},
        )
        try:
            yield connection
        finally:
            connection.terminate()  # a polite end would wait for a server that may be away

    async def _take_lease(self, writer: asyncpg.Connection) -> tuple[Lease, Progress] | None:
        """The lease as soon as it is free; None when a stop was asked for first."""
        while not self._stopping.is_set():
            if taken := await lease.acquire(writer, self._owner):
                return taken
            await wait(self._stopping, STANDBY_SECONDS)
        return None

    async def _publish_with(
        self,
        reader: asyncpg.Connection,
        writer: asyncpg.Connection,
        held: Lease,
        progress: Progress,
    ) -> None:
        active = ActiveRelay(
            reader, writer, held, progress, self._bootstrap_servers, self._name, self._rang
        )
        self._active = active
        try:
            async with asyncio.TaskGroup() as tasks:
                keeping = tasks.create_task(active.keep_lease_and_checkpoint())
                publishing = tasks.create_task(active.publish_until(self._stopping))
                await self._stopping.wait()
                await asyncio.wait([publishing], timeout=GRACE_SECONDS)
                publishing.cancel()
                keeping.cancel()
            await active.close()  # first, so that nothing of ours arrives among a successor's
            await active.hand_over()
        except* (LeaseLost, *postgres.AWAY) as group:
            # A process that was frozen may notice a query's time-out before the lost lease.
            if group.subgroup(LeaseLost) or held.is_over:
                self._fence()
            raise
        finally:
            self._active = None
            await active.close()

    @property
    def obstacle(self) -> str | None:
        """What keeps this relay from doing its work, None when nothing does."""
        if not self.connected:
            return "the database is away"
        return self._active.obstacle if self._active else None


class ActiveRelay:
    """The relay while it holds the lease."""

    def __init__(
        self,
        reader: asyncpg.Connection,
        writer: asyncpg.Connection,
        held: Lease,
        progress: Progress,
        bootstrap_servers: str,
        name: str,
        rang: asyncio.Event,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._lease = held
        self._progress = progress
        self._stored = progress
        self._bootstrap_servers = bootstrap_servers
        self._name = name
        self._rang = rang
        self._producer: AIOKafkaProducer | None = None
        self.obstacle: str | None = None

    async def keep_lease_and_checkpoint(self) -> None:
        """Renew every RENEW_SECONDS, store progress behind every CHECKPOINT_SECONDS."""
        clock = asyncio.get_running_loop().time
        renewed_at = clock()
        while True:
            await asyncio.sleep(CHECKPOINT_SECONDS)
            if clock() - renewed_at >= lease.RENEW_SECONDS:
                renewed_at = clock()
                await self._lease.renew(self._writer)
            await self._store()

    async def _store(self) -> None:
        progress = self._progress
        if progress != self._stored:
            await self._lease.store(self._writer, progress)
            self._stored = progress

    async def publish_until(self, stopping: asyncio.Event) -> None:
        """Publish what becomes visible; at the end look once more for what was just committed."""
        while not stopping.is_set():
            self._rang.clear()
            if not await self._publish_new():
                await wait(self._rang, IDLE_SECONDS_MAX)
        await self._publish_new()

    async def _publish_new(self) -> bool:
        """One look at the outbox; False when there was nothing new."""
        if self._progress.target is not None:
            await self._publish_window()
            return True
        snapshot, rows = await outbox.poll(self._reader, self._progress.published, ROWS_MAX)
        if rows is None:
            floor = await outbox.window_floor(self._reader, self._progress.published)
            self._progress = replace(self._progress, target=snapshot, floor=floor)
            return True
        if not rows:
            return False  # the old snapshot stays as good; a new one each time would be stored
        await self._send(rows)
        self._progress = Progress(Snapshot.parse(snapshot))
        return True

    async def _publish_window(self) -> None:
        """A window too large for one answer, page by page; resumable at the last page sent."""
        while rows := await outbox.page(self._reader, self._progress, ROWS_MAX):
            await self._send(rows)
            self._progress = replace(self._progress, floor=rows[-1].position)
        assert self._progress.target is not None
        self._progress = Progress(Snapshot.parse(self._progress.target))

    async def _send(self, rows: Sequence[OutboxRow]) -> None:
        """Publish rows, for as long as it takes and the lease holds.

        A refused batch leaves a hole in the producer's sequence, so the producer is replaced and
        all rows are sent again: duplicates, which consumers drop, but no loss and no inversion.
        """
        while rows:
            self._lease.check()
            try:
                client = await self._started_producer()
                with BatchTrace(rows) as trace:
                    trace.offsets = await kafka.publish(client, trace.records)
                self.obstacle = None
                return
            except KafkaError as error:
                self.obstacle = f"the broker does not take records: {error!r}"
                log.warning("broker did not take %d records, trying again: %r", len(rows), error)
                await self.close()
                await asyncio.sleep(RETRY_SECONDS)

    async def _started_producer(self) -> AIOKafkaProducer:
        if self._producer is None:
            self._producer = kafka.producer(self._bootstrap_servers, self._name)
            await self._producer.start()
        return self._producer

    async def hand_over(self) -> None:
        """Store the last progress and let a standby take over at once."""
        await self._store()
        await self._lease.release(self._writer)

    async def close(self) -> None:
        """Close the producer, if there is one."""
        if self._producer is not None:
            client, self._producer = self._producer, None
            await kafka.close(client)
