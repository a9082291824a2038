"""A reader of numbers: each has an effect, which is a row, and at some moment it is killed."""

import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import asyncpg
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from pydantic import BaseModel, ConfigDict

POLL_MILLISECONDS = 100

CREATE_TABLES = """
    CREATE TABLE effects (way text, number integer, place text, UNIQUE (way, place));
    CREATE TABLE offsets (way text PRIMARY KEY, next_offset bigint NOT NULL);
"""
"""Effects without a place are never equal."""
EFFECT = "INSERT INTO effects (way, number, place) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
STORE_OFFSET = """
    INSERT INTO offsets VALUES ($1, $2)
    ON CONFLICT (way) DO UPDATE SET next_offset = excluded.next_offset
"""
FIND_OFFSET = "SELECT next_offset FROM offsets WHERE way = $1"

CLIENT = {"enable_auto_commit": False, "auto_offset_reset": "earliest"}


class Moment(StrEnum):
    """When a reader is killed that is not killed after an effect."""

    BEFORE_OFFSET = "before it commits or stores an offset"
    AFTER_OFFSET = "after it has done so"


class Life(BaseModel):
    """What a reader is given: a function `way` of a program.

    `name` is that of its rows, `group` that of its group and of the topic that it may write to. It
    reads `every` records at a time. It is killed after the effect of number `dies_after`, or at the
    first moment `dies_at`, if that is not None.
    """

    model_config = ConfigDict(frozen=True)

    program: Path
    way: str
    name: str
    group: str
    servers: str
    dsn: str
    topic: str
    every: int
    dies_after: int | None = None
    dies_at: Moment | None = None


class Reader:
    """What a way works with. `read` is the number of records that it has read."""

    def __init__(self, life: Life, connection: asyncpg.Connection) -> None:
        self.life = life
        self.connection = connection
        self.place = TopicPartition(life.topic, 0)
        self.read = 0

    @asynccontextmanager
    async def consume(self, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
        """A client that begins where its group has committed, or else with the first number; it
        commits by itself only if the options say so."""
        options = {**CLIENT, "group_id": self.life.group, **options}
        async with MortalConsumer(self, bootstrap_servers=self.life.servers, **options) as consumer:
            consumer.assign([self.place])
            yield consumer

    async def batches(self, consumer: AIOKafkaConsumer) -> AsyncIterator[Sequence[ConsumerRecord]]:
        """All that the topic has now; the last batch may be smaller."""
        end = (await consumer.end_offsets([self.place]))[self.place]
        batch: list[ConsumerRecord] = []
        while (position := await consumer.position(self.place)) < end or batch:
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

    async def process_by_place(self, record: ConsumerRecord) -> None:
        """Have an effect whose key is where the record is: again, it is the same row."""
        await self._insert(record, f"{record.topic}/{record.partition}/{record.offset}")

    async def _insert(self, record: ConsumerRecord, place: str | None) -> None:
        await self.connection.execute(EFFECT, self.life.name, int(record.value), place)
        self.die_after(record)

    async def find_offset(self) -> int:
        """The offset that was stored in the database; 0 if none was."""
        return await self.connection.fetchval(FIND_OFFSET, self.life.name) or 0

    async def store_offset(self, offset: int) -> None:
        """Store the offset with which to begin the next time."""
        self.die_at(Moment.BEFORE_OFFSET)
        await self.connection.execute(STORE_OFFSET, self.life.name, offset)
        self.die_at(Moment.AFTER_OFFSET)

    def die_after(self, *records: ConsumerRecord) -> None:
        """Be killed if it is due, now that these have had their effect."""
        if any(int(record.value) == self.life.dies_after for record in records):
            die()

    def die_at(self, moment: Moment) -> None:
        if moment == self.life.dies_at:
            die()


class MortalConsumer(AIOKafkaConsumer):  # type: ignore[misc]
    """A client of Kafka whose process can be killed around a commit."""

    def __init__(self, reader: Reader, **options: Any) -> None:
        super().__init__(**options)
        self._reader = reader

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        self._reader.die_at(Moment.BEFORE_OFFSET)
        await super().commit(offsets)
        self._reader.die_at(Moment.AFTER_OFFSET)


def die() -> None:
    """As `kill -9` does it: nothing is closed, nothing more is sent."""
    os.kill(os.getpid(), signal.SIGKILL)
