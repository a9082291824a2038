"""A mirror: it copies the records of a topic from one cluster to another, with key, value, time and
partition, and notes which offset has become which."""

from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition

ORIGIN = "origin"
"""The header with the name of the cluster where a record was written first."""
POLL_MILLISECONDS = 100
POLL_RECORDS_MAX = 100
NOTED_EVERY = 50
"""Copied records between two notes of their offsets."""

Note = tuple[int, int]
"""The offset of a record in the first cluster and that in the second."""


@dataclass(kw_only=True)
class Mirror:
    """Copies from one cluster to another. With `marks` copies carry their origin, and records that
    carry one are not copied: two mirrors in opposite directions end."""

    source: str
    """The name of the cluster that it reads."""
    place: TopicPartition
    consumer: AIOKafkaConsumer
    producer: AIOKafkaProducer
    marks: bool = True
    copied: int = 0
    notes: list[Note] = field(default_factory=list)

    async def copy(self, limit: int = POLL_RECORDS_MAX) -> int:
        """Copy what one poll returns, and commit then: a crash repeats, and loses nothing."""
        found = await self.consumer.getmany(timeout_ms=POLL_MILLISECONDS, max_records=limit)
        own = [each for each in found.get(self.place, []) if not self.is_copy(each)]
        for record in own:
            await self.send(record)
        if found:
            await self.consumer.commit()
        return len(own)

    def is_copy(self, record: ConsumerRecord) -> bool:
        return any(name == ORIGIN for name, _ in record.headers)

    async def send(self, record: ConsumerRecord) -> None:
        origin = [(ORIGIN, self.source.encode())] if self.marks else []
        sent = await self.producer.send_and_wait(
            record.topic,
            record.value,
            key=record.key,
            partition=record.partition,
            timestamp_ms=record.timestamp,
            headers=[*record.headers, *origin],
        )
        if self.copied % NOTED_EVERY == 0:
            self.notes.append((record.offset, sent.offset))
        self.copied += 1


@asynccontextmanager
async def open_mirror(
    source: str, servers: str, target: str, place: TopicPartition, *, marks: bool = True
) -> AsyncIterator[Mirror]:
    """A mirror of one partition from `servers` to `target`; it begins where it has committed."""
    async with (
        AIOKafkaConsumer(
            bootstrap_servers=servers,
            group_id=f"{place.topic}.mirror",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
        AIOKafkaProducer(bootstrap_servers=target, acks="all", linger_ms=0) as producer,
    ):
        consumer.assign([place])
        yield Mirror(source=source, place=place, consumer=consumer, producer=producer, marks=marks)


def map_offset(notes: Sequence[Note], offset: int) -> int:
    """The offset in the second cluster of a record of the first: so far behind the last note at or
    before it. Raises ValueError if there is none."""
    index = bisect_right([first for first, _ in notes], offset)
    if index == 0:
        raise ValueError(f"no note at or before {offset}")
    first, second = notes[index - 1]
    return second + offset - first


def count_behind(per_second: int, milliseconds: int) -> int:
    """The records that a second cluster lacks, at a rate and a delay between the two."""
    return per_second * milliseconds // 1000
