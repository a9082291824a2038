"""Whether Kafka still has the records that others remember.

A broker acknowledges a record before it is on its disk. After a power cut the log of a partition
can be shorter than what was acknowledged to a relay, what a consumer group has committed, or what
a batch of Spark was planned to read. Kafka then assigns the same offsets to other records, and a
reader that continues at its offset skips them without an error.

The clients here look at the ends of logs, and read nothing: the end of what is committed, which
readers have, can be before an acknowledged record while a transaction of another program is open.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from shared.runtime.brokers import Brokers
from shared.runtime.logs import because

log = logging.getLogger(__name__)

REQUEST_TIMEOUT_MILLISECONDS = 5_000
SETTLED_SECONDS_MAX = 5.0
"""How long a broker that has just become the leader may not know the end of its own log."""
SETTLED_POLL_SECONDS = 0.5
WATCH_SECONDS = 10.0

Offsets = Mapping[TopicPartition, int]
"""The offset behind a record, by partition."""


class RecordsLost(Exception):
    """Kafka has lost records: the text names the partition and the command that repairs it."""

    @classmethod
    def in_partition(cls, partition: TopicPartition, end: int, reached: int) -> "RecordsLost":
        return cls(
            f"Kafka has lost records of {partition.topic}/{partition.partition}: offset {reached}"
            f" was reached before, and its log ends at {end}; run `make republish`"
        )

    @staticmethod
    def first_of(group: BaseExceptionGroup["RecordsLost"]) -> "RecordsLost":
        """The first of a group, which can be nested."""
        first = group.exceptions[0]
        return RecordsLost.first_of(first) if isinstance(first, BaseExceptionGroup) else first


async def require_records(brokers: Brokers, client_id: str, reached: Offsets) -> None:
    """Compare offsets that were reached before with the ends of the logs.

    Raises:
        RecordsLost: a log ends before the offset that was reached.
        KafkaError: the ends cannot be read now.
    """
    if reached:
        async with AIOKafkaConsumer(
            **brokers.options, client_id=client_id, request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS
        ) as client:
            await compare(client, reached)


async def watch_committed(
    brokers: Brokers, group: str, partitions: Collection[TopicPartition]
) -> None:
    """Compare the committed offsets of a consumer group with the ends of the logs, again and again.

    Raises:
        RecordsLost: a log ends before the offset that was committed.
    """
    while True:
        try:
            async with AIOKafkaConsumer(
                **brokers.options,
                client_id=group,
                group_id=group,  # without a subscription it does not become a member
                enable_auto_commit=False,
                request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS,
            ) as client:
                while True:
                    committed = {each: await client.committed(each) for each in partitions}
                    await compare(client, {each: o for each, o in committed.items() if o})
                    await asyncio.sleep(WATCH_SECONDS)
        except KafkaError as error:
            log.warning("cannot compare committed offsets with the logs", extra=because(error))
        await asyncio.sleep(WATCH_SECONDS)


async def compare(client: AIOKafkaConsumer, reached: Offsets) -> None:
    """Raises what `require_records` raises."""
    deadline = time.monotonic() + SETTLED_SECONDS_MAX
    while loss := find_loss(await client.end_offsets(list(reached)), reached):
        if time.monotonic() > deadline:
            raise loss
        await asyncio.sleep(SETTLED_POLL_SECONDS)


def find_loss(ends: Offsets, reached: Offsets) -> RecordsLost | None:
    """The first partition that is too short; None when there is none."""
    for partition, offset in sorted(reached.items()):
        if ends[partition] < offset:
            return RecordsLost.in_partition(partition, ends[partition], offset)
    return None
