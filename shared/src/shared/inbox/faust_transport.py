"""Faust without its path for each record.

Faust keeps the consumer group, the assignment and the commits. Between its consumer and an agent
each record would become an event that passes a race of four tasks, a queue, a stream and a dozen
sensors: half of what a worker does with a small message. Here all records that have arrived are
one batch, taken in the task that fetches them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import faust
from aiokafka import ConsumerRecord
from faust.transport.drivers import aiokafka
from faust.types import TP
from faust.types.transports import TransportT
from mode import ServiceT

from shared.runtime import failpoints
from shared.runtime.failpoints import Failpoint

log = logging.getLogger(__name__)

BATCH_RECORDS_MAX = 200
"""Records in one transaction: more would save little, and hold their streams longer."""
BATCH_PERIOD_SECONDS = 0.03
"""Between the beginnings of two batches: what arrives meanwhile shares a transaction."""
POLL_SECONDS = 1.0
"""How long Kafka is waited for before a stop is noticed."""

Take = Callable[[Sequence[ConsumerRecord]], Awaitable[None]]
"""Consumes a batch in its order, and returns when that is durable."""


class Consumer(aiokafka.Consumer):
    """Faust's consumer, whose fetcher takes records itself; offsets are committed as usual."""

    app: "App"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._taken: dict[TP, int] = {}
        """The next offset of each partition from which records were taken since the last commit."""

    async def _drain_messages(self, fetcher: ServiceT) -> None:
        """The loop of the fetcher. A stop cancels the batch in hand, which is then read again."""
        try:
            while not (self.should_stop or fetcher.should_stop):
                await self._take_arrived()
        except self.consumer_stopped_errors:
            if not self.app.should_stop:
                raise
        except Exception as error:
            # Faust would fetch on behind the batch in hand, and commit past it.
            log.exception("%s met a bug in itself", self.app.conf.id)
            await self.app.crash(error)
            await asyncio.Event().wait()

    async def _take_arrived(self) -> None:
        """Wait for records and take them; at the end wait until the next batch may begin."""
        found, active = await self._wait_next_records(POLL_SECONDS)
        if not self.flow_active:
            return await self._read_again()
        generation, clock = self.app.consumer_generation_id, asyncio.get_running_loop().time
        begun_at = clock()
        arrived = {tp: its for tp, its in (found or {}).items() if its and tp in (active or ())}
        batch = [record for its in arrived.values() for record in its]
        if not batch:
            return
        await self.app.take(batch)
        if generation == self.app.consumer_generation_id:
            self._taken |= {tp: its[-1].offset + 1 for tp, its in arrived.items()}
        failpoints.hit(Failpoint.RECORDS_MARKED_DONE)
        if len(batch) < BATCH_RECORDS_MAX:
            await asyncio.sleep(begun_at + BATCH_PERIOD_SECONDS - clock())

    async def _read_again(self) -> None:
        """Records that arrived while a rebalance has suspended the flow are not taken."""
        try:
            await self.perform_seek()
        except Exception as error:
            log.warning("cannot seek to the committed offsets: %r", error)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        # Reading begins at the committed offsets again; others may have committed newer ones.
        self._taken.clear()
        await super().on_partitions_assigned(assigned, generation_id)

    async def force_commit(self, topics: object = None, start_new_transaction: bool = True) -> bool:
        """Commit how far records were taken; whether there was anything to commit.

        Never further back: a log that has lost records is read from its beginning, and only the
        committed offset shows the loss (`log_ends`).
        """
        taken = {tp: end for tp, end in self._taken.items() if self._should_commit(tp, end)}
        if not taken or not await self._commit_offsets(taken, start_new_transaction):
            return False
        for tp, offset in taken.items():
            if self._taken.get(tp) == offset:
                del self._taken[tp]
        return True


class Transport(aiokafka.Transport):
    Consumer = Consumer


class App(faust.App):
    """A Faust application without agents: all records go to `take`."""

    def __init__(self, name: str, take: Take, topics: Sequence[str], **options: Any) -> None:
        super().__init__(name, broker_max_poll_records=BATCH_RECORDS_MAX, **options)
        self.take = take
        # Its messages have no acknowledgements of their own.
        self.topics.add(self.topic(*topics, acks=False))

    def _new_transport(self) -> TransportT:
        return Transport(self.conf.broker_consumer, self)
