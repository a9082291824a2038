"""Ways to read numbers and to remember how far, each until the end of the topic or until it dies.

Each is a function of a Reader. `reader.process` has an effect, a row in a table, and ends this
process as kill -9 does, if this is the number that it dies after.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import asyncpg
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.structs import OffsetAndMetadata

from test_support.counter.counted_records import record as to_incoming
from test_support.counter.desk import Desk

BATCH_RECORDS = 100
AUTO_COMMIT_MILLISECONDS = 50
SLOW_SECONDS = 0.3
"""Longer than the interval of automatic commits."""
POLL_MILLISECONDS = 100
FAILING_NUMBER = 30

TABLES = """
    CREATE TABLE IF NOT EXISTS effects_of_ways (way text, number integer);
    CREATE TABLE IF NOT EXISTS effects_by_place (
        way text, topic text, partition integer, read_offset bigint, number integer,
        PRIMARY KEY (way, topic, partition, read_offset)
    );
    CREATE TABLE IF NOT EXISTS offsets_of_ways (way text PRIMARY KEY, next_offset bigint NOT NULL);
"""
EMPTY_TABLES = "TRUNCATE effects_of_ways, effects_by_place, offsets_of_ways"
INSERT = "INSERT INTO effects_of_ways VALUES ($1, $2)"
INSERT_ONCE = "INSERT INTO effects_by_place VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
STORE_OFFSET = """
    INSERT INTO offsets_of_ways VALUES ($1, $2)
    ON CONFLICT (way) DO UPDATE SET next_offset = excluded.next_offset
"""
READ_OFFSET = "SELECT next_offset FROM offsets_of_ways WHERE way = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """What a way works with. `name` is that of its group, and of its rows in tables; it dies after
    the effect of number `dies_after`, if that is not None."""

    name: str
    servers: str
    connection: asyncpg.Connection
    place: TopicPartition
    out: str
    every: int
    """Records of one commit."""
    dies_after: int | None

    @asynccontextmanager
    async def consumer(self, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
        """Begins where its group has committed, or at the beginning."""
        defaults = {"enable_auto_commit": False, "auto_offset_reset": "earliest"}
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.servers, group_id=self.name, **(defaults | options)
        )
        await consumer.start()
        try:
            consumer.assign([self.place])
            yield consumer
        finally:
            await consumer.stop()

    async def batches(
        self, consumer: AIOKafkaConsumer, size: int | None = None
    ) -> AsyncIterator[Sequence[ConsumerRecord]]:
        """All that the topic has now; the last batch may be smaller."""
        end = (await consumer.end_offsets([self.place]))[self.place]
        while await consumer.position(self.place) < end:
            found = await consumer.getmany(
                timeout_ms=POLL_MILLISECONDS, max_records=size or self.every
            )
            for batch in found.values():
                yield batch

    async def process(self, record: ConsumerRecord) -> None:
        number = int(record.value)
        await self.connection.execute(INSERT, self.name, number)
        self.die_if_due(number)

    def die_if_due(self, number: int) -> None:
        if number == self.dies_after:
            os.kill(os.getpid(), signal.SIGKILL)


Way = Callable[[Reader], Awaitable[None]]


async def commit_automatically_while_slow(reader: Reader) -> None:
    """The client commits what it has handed out, also while that is still being processed."""
    options = {"enable_auto_commit": True, "auto_commit_interval_ms": AUTO_COMMIT_MILLISECONDS}
    async with reader.consumer(**options) as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                if int(record.value) == reader.dies_after:
                    await asyncio.sleep(SLOW_SECONDS)
                await reader.process(record)


async def commit_automatically_and_late(reader: Reader) -> None:
    """The client commits each five seconds, and the process dies three seconds after the last."""
    options = {"enable_auto_commit": True, "auto_commit_interval_ms": 5_000}
    async with reader.consumer(**options) as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                await reader.process(record)


async def commit_before(reader: Reader) -> None:
    async with reader.consumer() as consumer:
        async for batch in reader.batches(consumer):
            await consumer.commit()
            for record in batch:
                await reader.process(record)


async def commit_after(reader: Reader) -> None:
    async with reader.consumer() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                await reader.process(record)
            await consumer.commit()


async def commit_out_of_order(reader: Reader) -> None:
    """A commit is not waited for. The one that was delayed comes after its successor, and the group
    is back where it was before."""
    delayed: int | None = None
    async with reader.consumer() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                await reader.process(record)
            await consumer.commit({reader.place: batch[-1].offset + 1})
            if delayed is not None:
                await consumer.commit({reader.place: delayed})
            delayed = batch[-1].offset + 1


async def commit_past_a_failure(reader: Reader) -> None:
    """A record that cannot be processed is logged, and the next commit passes it."""
    async with reader.consumer() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                if int(record.value) != FAILING_NUMBER:
                    await reader.process(record)
            await consumer.commit()


async def commit_up_to_a_failure(reader: Reader) -> None:
    """The position never passes a record that failed: here it is tried again at once."""
    failed = False
    async with reader.consumer() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                if int(record.value) == FAILING_NUMBER and not failed:
                    failed = True
                    await consumer.commit({reader.place: record.offset})
                    consumer.seek(reader.place, record.offset)
                    break
                await reader.process(record)
            else:
                await consumer.commit()


async def write_by_place(reader: Reader) -> None:
    """The effect has the place of its record as its key: again, it is the same row."""
    async with reader.consumer() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                place = (record.topic, record.partition, record.offset)
                await reader.connection.execute(INSERT_ONCE, reader.name, *place, int(record.value))
                reader.die_if_due(int(record.value))
            await consumer.commit()


async def store_offset_with_effect(reader: Reader) -> None:
    """The effects and the next offset are in one transaction of the database."""
    await store_offset(reader, next_one=1)


async def store_offset_of_the_last(reader: Reader) -> None:
    """Wrong by one: where a reader begins is the offset after the last one that it has read."""
    await store_offset(reader, next_one=0)


async def store_offset(reader: Reader, next_one: int) -> None:
    async with reader.consumer() as consumer:
        begin = await reader.connection.fetchval(READ_OFFSET, reader.name)
        consumer.seek(reader.place, begin or 0)
        async for batch in reader.batches(consumer):
            async with reader.connection.transaction():
                for record in batch:
                    await reader.process(record)
                offset = batch[-1].offset + next_one
                await reader.connection.execute(STORE_OFFSET, reader.name, offset)


async def send_in_transaction(reader: Reader) -> None:
    """The effect is a record of another topic, in one transaction of Kafka with the offset."""
    producer = AIOKafkaProducer(bootstrap_servers=reader.servers, transactional_id=reader.name)
    await producer.start()
    try:
        async with reader.consumer() as consumer:
            async for batch in reader.batches(consumer):
                async with producer.transaction():
                    for record in batch:
                        await producer.send_and_wait(reader.out, record.value, partition=0)
                        reader.die_if_due(int(record.value))
                    offsets = {reader.place: OffsetAndMetadata(batch[-1].offset + 1, "")}
                    await producer.send_offsets_to_transaction(offsets, reader.name)
    finally:
        await producer.stop()


async def consume_as_the_shop(reader: Reader) -> None:
    """The version of each stream that was consumed is a row, in the transaction of the effects."""
    stream = uuid5(NAMESPACE_OID, reader.name)
    async with asyncpg.create_pool(dsn=reader_dsn(), min_size=1, max_size=2) as pool:
        desk = Desk(pool)
        async with reader.consumer() as consumer:
            async for batch in reader.batches(consumer):
                await desk.consumer.take(
                    [to_incoming(stream, int(record.value)) for record in batch]
                )
                for record in batch:
                    reader.die_if_due(int(record.value))
                await consumer.commit()


def reader_dsn() -> str:
    return os.environ["LESSON_DSN"]


WAYS: Mapping[str, Way] = {
    each.__name__.replace("_", " "): each
    for each in (
        commit_automatically_while_slow,
        commit_automatically_and_late,
        commit_before,
        commit_after,
        commit_out_of_order,
        commit_past_a_failure,
        commit_up_to_a_failure,
        write_by_place,
        store_offset_with_effect,
        store_offset_of_the_last,
        send_in_transaction,
        consume_as_the_shop,
    )
}
