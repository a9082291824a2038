"""Bad records, copied to the dead letter topics before their batch is committed.

Spark only says where they are, so that the headers of good records need not travel; they are read
again, each as it is. A batch that runs again after a crash may copy its bad records twice.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from itertools import groupby

import pyarrow as pa
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from shared.inbox import dead_letters
from shared.messaging import kafka
from shared.messaging.records import IncomingRecord
from shared.messaging.wire import OutgoingRecord
from shared.runtime.brokers import Brokers

log = logging.getLogger(__name__)

READER = "analytics-job"
READ_SECONDS_MAX = 10.0
"""Until Kafka gives one bad record again."""
LETTERS_AT_ONCE_MAX = 500
"""In memory; a topic that nobody here understands is all bad records."""


class NotSetAside(Exception):
    """Kafka did not give a bad record again, or did not take its letter."""


def write_dead_letter(brokers: Brokers, bad: pa.Table) -> None:
    """Copy the records (rows of `records.BAD`) with the reasons, and wait for acknowledgement.

    Raises:
        NotSetAside: not all were copied: the batch must not be committed.
    """
    places = bad.sort_by([(name, "ascending") for name in ("topic", "partition", "offset")])
    for row in places.slice(0, 1).to_pylist():
        log.error("%d bad records set aside, the first one is %s", bad.num_rows, row)
    try:
        asyncio.run(copy(brokers, places.to_pylist()))
    except (KafkaError, TimeoutError) as error:
        raise NotSetAside(f"bad records could not be set aside: {error!r}") from error


async def copy(brokers: Brokers, places: list[dict[str, object]]) -> None:
    """Raises KafkaError, TimeoutError."""
    producer = kafka.create_producer(brokers, READER)
    await producer.start()
    try:
        held: list[OutgoingRecord] = []
        async for letter in letters(brokers, places):
            held.append(letter)
            if len(held) == LETTERS_AT_ONCE_MAX:
                await kafka.publish(producer, held)
                held = []
        await kafka.publish(producer, held)
    finally:
        await kafka.close(producer)


async def letters(
    brokers: Brokers, places: Iterable[dict[str, object]]
) -> AsyncIterator[OutgoingRecord]:
    """The letter of each place; places are sorted."""
    consumer = AIOKafkaConsumer(**brokers.options, client_id=READER)
    await consumer.start()
    try:
        for (topic, number), rows in groupby(places, lambda row: (row["topic"], row["partition"])):
            partition = TopicPartition(topic, number)
            consumer.assign([partition])
            following = None
            for row in rows:
                if row["offset"] != following:
                    consumer.seek(partition, row["offset"])
                record = await read(consumer, partition)
                following = record.offset + 1
                yield dead_letters.to_dead_letter(record, READER, str(row["reason"]))
    finally:
        await consumer.stop()


async def read(consumer: AIOKafkaConsumer, partition: TopicPartition) -> IncomingRecord:
    async with asyncio.timeout(READ_SECONDS_MAX):
        record = await consumer.getone(partition)
    return IncomingRecord(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )
