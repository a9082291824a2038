"""How long a confirmed order takes to its hour: from its event to the row of the Spark job."""

import asyncio
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg
from aiokafka import ConsumerRecord, TopicPartition

from benchmarks import servers
from local_stack import postgres
from local_stack.stack_spec import StackContext
from shared.messaging import messages

TOPIC = "orders.v1"
CONFIRMED = b"order-confirmed"
LOOK_EVERY_SECONDS = 0.2
COUNTED_SECONDS_MAX = 120
READ_SECONDS_MAX = 120
MILLISECONDS = 1_000

Ends = Mapping[TopicPartition, int]

# The time is taken by the statement before the commit.
BATCHES = """
    SELECT offsets, extract(epoch FROM committed_at)::float8 AS committed_at
    FROM batches
    WHERE committed_at >= to_timestamp($1)
    ORDER BY batch_id
"""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The record of a confirmed order; instants in seconds since 1970."""

    partition: TopicPartition
    offset: int
    recorded_at: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Where a batch of the job ended in the topic, and when its rows were committed."""

    ends: Ends
    committed_at: float


async def compute_milliseconds(
    context: StackContext, begin: Ends, began_at: float
) -> Sequence[float]:
    """Of each order that was confirmed since `begin`, once all of them are in their hours."""
    ends = await servers.ends(context, TOPIC)
    batches = await wait_until_counted(context, ends, began_at)
    return list(waits(await read_confirmations(context, begin, ends), batches))


async def wait_until_counted(context: StackContext, ends: Ends, began_at: float) -> Sequence[Batch]:
    """The batches since an instant, as soon as they have read everything before `ends`."""
    async with (
        servers.connected(postgres.dsn(context, "analytics")) as connection,
        servers.bounded(COUNTED_SECONDS_MAX, "to count the orders"),
    ):
        while True:
            rows = await connection.fetch(BATCHES, began_at)
            batches = [to_batch(row) for row in rows]
            if batches and all(batches[-1].ends[each] >= end for each, end in ends.items()):
                return batches
            await asyncio.sleep(LOOK_EVERY_SECONDS)


def to_batch(row: asyncpg.Record) -> Batch:
    read = json.loads(row["offsets"])[TOPIC]
    ends = {TopicPartition(TOPIC, int(partition)): end for partition, (_, end) in read.items()}
    return Batch(ends, row["committed_at"])


async def read_confirmations(
    context: StackContext, begin: Ends, ends: Ends
) -> Sequence[Confirmation]:
    found: list[Confirmation] = []
    left = {each for each, end in ends.items() if begin[each] < end}
    async with (
        servers.reader(context, begin) as consumer,
        servers.bounded(READ_SECONDS_MAX, "to read the topic"),
    ):
        while left:
            for partition, records in (await consumer.getmany(timeout_ms=MILLISECONDS)).items():
                found += to_confirmations(partition, records)
                if records[-1].offset + 1 >= ends[partition]:
                    left.discard(partition)
    return found


def to_confirmations(
    partition: TopicPartition, records: Sequence[ConsumerRecord]
) -> Iterator[Confirmation]:
    for record in records:
        headers = dict(record.headers)
        if headers[messages.TYPE] == CONFIRMED:
            recorded_at = datetime.fromisoformat(headers[messages.TIME].decode()).timestamp()
            yield Confirmation(partition, record.offset, recorded_at)


def waits(confirmations: Sequence[Confirmation], batches: Sequence[Batch]) -> Iterator[float]:
    """Milliseconds from each event to the commit of the first batch that has read it."""
    ends = {each: [batch.ends[each] for batch in batches] for each in batches[0].ends}
    for each in confirmations:
        batch = batches[bisect_right(ends[each.partition], each.offset)]
        yield (batch.committed_at - each.recorded_at) * MILLISECONDS
