"""Bad records, copied to the dead letter topics before their batch is committed.

Spark returns only their offsets, so that the headers of good records are not shipped; the records
are read again and copied unchanged. A batch that runs again after a crash can copy them twice.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from itertools import groupby

import pyarrow as pa
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from shared.inbox import dead_letters
from shared.messaging import kafka, reading
from shared.messaging.records import IncomingRecord
from shared.messaging.wire import OutgoingRecord
from shared.runtime.brokers import Brokers

log = logging.getLogger(__name__)

READER = "analytics-job"
READ_SECONDS_MAX = 10.0
"""Time-out of the read of one bad record."""
LETTERS_PER_WRITE_MAX = 500
"""Bounds memory: in a topic of an unknown version, all records are bad."""


class DeadLettersNotWritten(Exception):
    """A bad record could not be read again, or its dead letter was not acknowledged."""


def write_dead_letter(brokers: Brokers, bad: pa.Table) -> None:
    """Copy the records (rows of `records.BAD`) with the reasons, and wait for the acknowledgement.

    Raises:
        DeadLettersNotWritten: not all were copied; the batch must not be committed.
    """
    places = bad.sort_by([(name, "ascending") for name in ("topic", "partition", "offset")])
    for row in places.slice(0, 1).to_pylist():
        about = {"records": bad.num_rows, "first": row}
        log.error("bad records become dead letters", extra=about)
    try:
        asyncio.run(copy(brokers, places.to_pylist()))
    except (KafkaError, TimeoutError) as error:
        raise DeadLettersNotWritten(f"bad records could not be dead-lettered: {error!r}") from error


async def copy(brokers: Brokers, places: list[dict[str, object]]) -> None:
    """Raises KafkaError, TimeoutError."""
    producer = kafka.create_producer(brokers, READER)
    await producer.start()
    try:
        held: list[OutgoingRecord] = []
        async for letter in read_letters(brokers, places):
            held.append(letter)
            if len(held) == LETTERS_PER_WRITE_MAX:
                await kafka.publish(producer, held)
                held = []
        await kafka.publish(producer, held)
    finally:
        await kafka.close(producer)


async def read_letters(
    brokers: Brokers, places: Iterable[dict[str, object]]
) -> AsyncIterator[OutgoingRecord]:
    """The dead letter of each record in `places` (rows of `records.BAD`), which are sorted."""
    consumer = reading.create_client(brokers, client_id=READER)
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
        return reading.to_record(await consumer.getone(partition))
