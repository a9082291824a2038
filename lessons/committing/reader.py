"""A reader of numbers: each has an effect, which is a row, and at some moment it is killed."""

import os
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import asyncpg
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from lessons.lesson import Part

POLL_MILLISECONDS = 100

CREATE_TABLES = """
    CREATE TABLE effects (way text, number integer, source text, UNIQUE (way, source));
    CREATE TABLE offsets (way text PRIMARY KEY, next_offset bigint NOT NULL);
"""
"""Effects without a source are never equal."""
EFFECT = "INSERT INTO effects (way, number, source) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
STORE_OFFSET = """
    INSERT INTO offsets VALUES ($1, $2)
    ON CONFLICT (way) DO UPDATE SET next_offset = excluded.next_offset
"""
FIND_OFFSET = "SELECT next_offset FROM offsets WHERE way = $1"

CLIENT = {"enable_auto_commit": False, "auto_offset_reset": "earliest"}


class Moment(StrEnum):
    """When a reader can be killed."""

    AFTER_EFFECT = "after the effect of a number"
    BEFORE_OFFSET = "before it commits or stores an offset"
    AFTER_OFFSET = "after it has committed or stored an offset"


class Death(Part):
    """`number` is that of the effect, or how many offsets there were with this one."""

    moment: Moment
    number: int


class Life(Part):
    """What a reader is given: a function `way` of a program, from its start to its end or death.

    `name` is that of its rows, `group` that of its group and of the topic that it may write to. It
    reads `every` records at a time. After `seconds_max` it is ended.
    """

    program: Path
    way: str
    name: str
    group: str
    servers: str
    dsn: str
    topic: str
    every: int
    seconds_max: int
    death: Death | None = None


class Reader:
    """What a way works with. `read` is the number of records that it has read."""

    def __init__(self, life: Life, connection: asyncpg.Connection) -> None:
        self.life = life
        self.connection = connection
        self.partition = TopicPartition(life.topic, 0)
        self.read = 0
        self._offsets = 0

    @asynccontextmanager
    async def consume(self, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
        """Open a client that begins where its group has committed, or else with the first number.

        It commits by itself only if the options say so.
        """
        options = {**CLIENT, "group_id": self.life.group, **options}
        async with MortalConsumer(self, bootstrap_servers=self.life.servers, **options) as consumer:
            consumer.assign([self.partition])
            yield consumer

    async def batches(self, consumer: AIOKafkaConsumer) -> AsyncIterator[Sequence[ConsumerRecord]]:
        """Read all that the topic has now; the last batch may be smaller."""
        end = (await consumer.end_offsets([self.partition]))[self.partition]
        batch: list[ConsumerRecord] = []
        while (position := await consumer.position(self.partition)) < end or batch:
            if len(batch) == self.life.every or position == end:
                self.read += len(batch)
                yield batch
                batch = []
                continue
            found = await consumer.getmany(
                timeout_ms=POLL_MILLISECONDS, max_records=self.life.every - len(batch)
            )
            batch += [record for records in found.values() for record in records]

    async def process(self, record: ConsumerRecord) -> None:
        """Have an effect: one row more, each time."""
        await self._insert(record, None)

    async def process_by_source(self, record: ConsumerRecord) -> None:
        """Have an effect whose key is where the record is: again, it is the same row."""
        await self._insert(record, f"{record.topic}/{record.partition}/{record.offset}")

    async def _insert(self, record: ConsumerRecord, source: str | None) -> None:
        await self.connection.execute(EFFECT, self.life.name, int(record.value), source)
        self.die_after(record)

    async def find_offset(self) -> int:
        """Find the offset that was stored in the database; 0 if none was."""
        return await self.connection.fetchval(FIND_OFFSET, self.life.name) or 0

    async def store_offset(self, offset: int) -> None:
        """Store in the database with which offset to begin the next time."""
        with self.dying_around_offset():
            await self.connection.execute(STORE_OFFSET, self.life.name, offset)

    @contextmanager
    def dying_around_offset(self) -> Iterator[None]:
        """Be killed before or after what is inside, if it is due."""
        self._offsets += 1
        self._die_if_due(Moment.BEFORE_OFFSET, self._offsets)
        yield
        self._die_if_due(Moment.AFTER_OFFSET, self._offsets)

    def die_after(self, *records: ConsumerRecord) -> None:
        """Be killed if it is due, now that these have had their effect."""
        for record in records:
            self._die_if_due(Moment.AFTER_EFFECT, int(record.value))

    def _die_if_due(self, moment: Moment, number: int) -> None:
        """End as `kill -9` ends a process: nothing is closed, nothing more is sent."""
        if self.life.death == Death(moment=moment, number=number):
            os.kill(os.getpid(), signal.SIGKILL)


class MortalConsumer(AIOKafkaConsumer):  # type: ignore[misc]
    """A client of Kafka whose process can be killed around a commit."""

    def __init__(self, reader: Reader, **options: Any) -> None:
        super().__init__(**options)
        self._reader = reader

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit offsets, or else the position."""
        with self._reader.dying_around_offset():
            await super().commit(offsets)
