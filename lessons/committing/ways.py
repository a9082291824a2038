"""Ways to read numbers and to remember how far: each reads to the end of its topic, or is killed.

Between the effect of a record and the commit of its offset, any process can end.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from uuid import NAMESPACE_OID, uuid5

import asyncpg
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import OffsetAndMetadata

from lessons.committing.reader import EFFECT, Reader
from shared.inbox.consumer import Consumer, Delivery
from shared.messaging.wire import OutgoingRecord
from shared.runtime.postgres import Connection
from shared.runtime.relay_notifier import RelayNotifier
from test_support.counter.counted_records import record as to_counted
from test_support.counter.counter import TOPIC

OFTEN_MILLISECONDS = 10
SELDOM_MILLISECONDS = 24 * 3600 * 1000
FAILING_NUMBER = 30


async def commit_automatically_at_once(reader: Reader) -> None:
    """The client commits what it has handed out, also while that is still being processed."""
    async with reader.consume(
        enable_auto_commit=True, auto_commit_interval_ms=OFTEN_MILLISECONDS
    ) as consumer:
        async for batch in reader.batches(consumer):
            await wait_until_committed(consumer, reader)
            for record in batch:
                await reader.process(record)


async def wait_until_committed(consumer: AIOKafkaConsumer, reader: Reader) -> None:
    """Take longer than the interval of automatic commits, however slow these are."""
    handed_out = await consumer.position(reader.partition)
    while True:
        committed = await consumer.committed(reader.partition)
        if committed == handed_out:
            return
        await asyncio.sleep(OFTEN_MILLISECONDS / 1000)


async def commit_automatically_and_late(reader: Reader) -> None:
    """The client commits once a day; by default it does each five seconds."""
    async with reader.consume(
        enable_auto_commit=True, auto_commit_interval_ms=SELDOM_MILLISECONDS
    ) as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                await reader.process(record)


async def commit_before(reader: Reader) -> None:
    """The effects of a batch come after its commit."""
    async with reader.consume() as consumer:
        async for batch in reader.batches(consumer):
            await consumer.commit()
            for record in batch:
                await reader.process(record)


async def commit_after(reader: Reader) -> None:
    """The effects of a batch come before its commit."""
    async with reader.consume() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                await reader.process(record)
            await consumer.commit()


async def commit_out_of_order(reader: Reader) -> None:
    """A commit that was not waited for, and is sent again, comes after its successor: the group is
    back where it was a batch before."""
    delayed = 0
    async with reader.consume() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                await reader.process(record)
            await consumer.commit()
            await consumer.commit({reader.partition: delayed})
            delayed = batch[-1].offset + 1


async def commit_past_a_failure(reader: Reader) -> None:
    """Wrong: a record that cannot be processed is passed by the next commit."""
    async with reader.consume() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                if int(record.value) != FAILING_NUMBER:
                    await reader.process(record)
            await consumer.commit()


async def commit_up_to_a_failure(reader: Reader) -> None:
    """No commit passes a record that fails: it is read again, and works then."""
    has_failed = False
    async with reader.consume() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                if int(record.value) == FAILING_NUMBER and not has_failed:
                    has_failed = True
                    consumer.seek(reader.partition, record.offset)
                    break
                await reader.process(record)
            await consumer.commit()


async def write_by_source(reader: Reader) -> None:
    """An effect has topic, partition and offset of its record as its key: again, it is the same."""
    async with reader.consume() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                await reader.process_by_source(record)
            await consumer.commit()


async def store_offset_with_effects(reader: Reader) -> None:
    """The effects of a batch and the next offset are one transaction of the database."""
    await store_offset(reader, after_last=1)


async def store_offset_of_last(reader: Reader) -> None:
    """Wrong by one: a reader goes on with the offset after the last one that it has read."""
    await store_offset(reader, after_last=0)


async def store_offset(reader: Reader, after_last: int) -> None:
    async with reader.consume() as consumer:
        consumer.seek(reader.partition, await reader.find_offset())
        async for batch in reader.batches(consumer):
            async with reader.connection.transaction():
                for record in batch:
                    await reader.process(record)
                await reader.store_offset(batch[-1].offset + after_last)


async def send_in_transaction(reader: Reader) -> None:
    """An effect is a record of another topic, in one transaction of Kafka with the next offset."""
    group = reader.life.group
    producer = AIOKafkaProducer(bootstrap_servers=reader.life.servers, transactional_id=group)
    async with producer, reader.consume() as consumer:
        async for batch in reader.batches(consumer):
            async with producer.transaction():
                for record in batch:
                    await producer.send(group, record.value)
                await producer.flush()
                reader.die_after(*batch)
                end = OffsetAndMetadata(batch[-1].offset + 1, "")
                await producer.send_offsets_to_transaction({reader.partition: end}, group)


async def consume_as_the_shop(reader: Reader) -> None:
    """The version of a stream up to which it was consumed is a row, in the transaction of the
    effects. A worker of the shop does nothing else with a batch."""
    stream = uuid5(NAMESPACE_OID, reader.life.name)
    async with asyncpg.create_pool(dsn=reader.life.dsn, min_size=1, max_size=1) as pool:
        shop = Consumer(
            reader.life.name,
            pool,
            {TOPIC: {"counted": [partial(have_effects, reader.life.name)]}},
            refuse_dead_letters,
            RelayNotifier(None),
        )
        async with reader.consume() as consumer:
            async for batch in reader.batches(consumer):
                await shop.take([to_counted(stream, int(record.value)) for record in batch])
                reader.die_after(*batch)
                await consumer.commit()


async def have_effects(name: str, connection: Connection, deliveries: Sequence[Delivery]) -> None:
    for each in deliveries:
        await connection.execute(EFFECT, name, each.message.stream_version, None)


async def refuse_dead_letters(letters: Sequence[OutgoingRecord]) -> None:
    raise AssertionError(f"{len(letters)} numbers cannot be consumed")
