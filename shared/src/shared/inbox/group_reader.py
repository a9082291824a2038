"""A member of a consumer group: what has arrived is taken batch by batch, then committed.

aiokafka's part is the group, the assignment and the records. Exactness is not: that is the version
row which is written in the transaction of the effects, so a record that is read again is harmless.
"""

import asyncio
import logging
import math
from collections.abc import Collection, Iterable

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import KafkaConnectionError, KafkaError

from shared.inbox.consumer import Consumer
from shared.messaging import reading
from shared.runtime import failpoints
from shared.runtime.brokers import Brokers
from shared.runtime.failpoints import Failpoint
from shared.runtime.logs import because

log = logging.getLogger(__name__)

BATCH_RECORDS_MAX = 200
"""Records in one transaction: more would save little, and hold their streams longer."""
BATCH_PERIOD_SECONDS = 0.015
"""Between the beginnings of two batches: what arrives meanwhile shares a transaction."""

SESSION_TIMEOUT_SECONDS = 8.0
"""A killed worker's partitions come back after it."""
REBALANCE_TIMEOUT_SECONDS = 8.0
HEARTBEAT_SECONDS = 2.0
LET_GO_SECONDS_MAX = 5.0
"""How long a rebalance waits for the batch in hand and its commit. The whole group waits with it,
and goes on without this member after the time-out of the rebalance."""
COMMIT_PERIOD_SECONDS = 1.0
COMMIT_SECONDS_MAX = 2.0
"""Of one attempt: aiokafka would wait for a coordinator for as long as there is none."""
CONNECT_PAUSE_SECONDS = 1.0


class GroupReader(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Reads the topics of a consumer, as a member of the group of its name."""

    def __init__(self, consumer: Consumer, brokers: Brokers) -> None:
        self.is_member = False
        """Whether it has its place in the group, with partitions or as a spare."""
        self._consumer = consumer
        self._brokers = brokers
        self._in_hand = asyncio.Lock()
        self._assignments = 0
        self._taken: dict[TopicPartition, int] = {}
        """The next offset of each partition from which records were taken since the last commit."""
        self._committed: dict[TopicPartition, int] = {}
        self._clock = asyncio.get_running_loop().time
        self._begin_at = self._commit_at = self._clock()

    async def run(self) -> None:
        """Consume until it is cancelled; at the end, what was taken is committed.

        Raises:
            KafkaError: the group or a topic cannot be read.
            Exception: a bug in the consumer. Nothing of the batch in hand is committed.
        """
        self._client = self._create_client()
        try:
            await self._connect()
            self._client.subscribe(self._consumer.topics, listener=self)
            try:
                while True:
                    await self._take_arrived()
            finally:
                await self._commit()
        finally:
            await self._client.stop()

    def _create_client(self) -> AIOKafkaConsumer:
        return reading.create_client(
            self._brokers,
            client_id=self._consumer.name,
            group_id=self._consumer.name,
            partition_assignment_strategy=[RoundRobinPartitionAssignor],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=int(SESSION_TIMEOUT_SECONDS * 1000),
            rebalance_timeout_ms=int(REBALANCE_TIMEOUT_SECONDS * 1000),
            heartbeat_interval_ms=int(HEARTBEAT_SECONDS * 1000),
        )

    async def _connect(self) -> None:
        while True:
            try:
                await self._client.start()
                return
            except KafkaConnectionError as error:
                log.warning("cannot reach Kafka", extra=because(error))
            await asyncio.sleep(CONNECT_PAUSE_SECONDS)

    async def _take_arrived(self) -> None:
        """Take what arrives until the next batch may begin, or the first record after that."""
        batch, assignment = await self._collect()
        async with self._in_hand:
            # What was read before a rebalance is read again after it.
            if batch and assignment == self._assignments:
                self._begin_at = self._clock() + BATCH_PERIOD_SECONDS
                await self._consumer.take([reading.to_record(each) for each in batch])
                if assignment == self._assignments:
                    self._note(batch)
                failpoints.hit(Failpoint.RECORDS_MARKED_DONE)
            if self._clock() >= self._commit_at:
                await self._commit()

    async def _collect(self) -> tuple[list[ConsumerRecord], int]:
        """The records of a batch, in the order of each partition, and the assignment that they were
        read in. There are none if none has arrived for a while.

        The client fetches nothing while it holds a record, so it is emptied again and again.
        """
        batch: list[ConsumerRecord] = []
        assignment = self._assignments
        while len(batch) < BATCH_RECORDS_MAX:
            left = self._begin_at - self._clock() if batch else COMMIT_PERIOD_SECONDS
            if left <= 0:
                break
            arrived = await self._client.getmany(
                timeout_ms=math.ceil(left * 1000), max_records=BATCH_RECORDS_MAX - len(batch)
            )
            if not arrived:
                break
            if assignment != self._assignments:
                batch, assignment = [], self._assignments
            batch += [each for records in arrived.values() for each in records]
        return batch, assignment

    def _note(self, batch: Iterable[ConsumerRecord]) -> None:
        """Note the offsets behind these records, to be committed."""
        for each in batch:
            self._taken[TopicPartition(each.topic, each.partition)] = each.offset + 1

    async def _commit(self) -> None:
        """Commit what was taken; if that fails, it is tried again, or the records are read again.

        Never further back: a log that has lost records is read from its beginning, and only the
        committed offset shows the loss (`log_ends`).
        """
        self._commit_at = self._clock() + COMMIT_PERIOD_SECONDS
        try:
            async with asyncio.timeout(COMMIT_SECONDS_MAX):
                for partition in self._taken.keys() - self._committed.keys():
                    self._committed[partition] = await self._client.committed(partition) or 0
                ahead = {p: end for p, end in self._taken.items() if end > self._committed[p]}
                if ahead:
                    await self._client.commit(ahead)
        except (KafkaError, TimeoutError) as error:
            log.warning("offsets are not committed", extra=because(error))
        else:
            self._committed |= ahead
            self._taken.clear()

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """A rebalance begins: let the batch in hand end, and commit it."""
        self.is_member = False
        try:
            async with asyncio.timeout(LET_GO_SECONDS_MAX), self._in_hand:
                await self._commit()
        except TimeoutError as error:
            log.warning("the group is rebalanced with a batch in hand", extra=because(error))
        self._assignments += 1
        self._taken.clear()

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Reading begins at the committed offsets, which others may have moved."""
        self._committed.clear()
        self.is_member = True
