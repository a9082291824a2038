"""Spark's sink with and without an epoch: a batch that the checkpoint lacks comes again."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from lessons.spark_engine import running

CREATE_TABLE = "CREATE TABLE epochs (way text PRIMARY KEY, batch_id bigint NOT NULL);"
EFFECT = "INSERT INTO effects (way, number) VALUES (%s, %s)"
ADVANCE_EPOCH = """
    INSERT INTO epochs AS epoch VALUES (%s, %s)
    ON CONFLICT (way) DO UPDATE SET batch_id = excluded.batch_id
    WHERE epoch.batch_id < excluded.batch_id
"""

Write = Callable[[psycopg.Cursor, str, Sequence[int], int], None]
"""Writes the effects of a way: the numbers of a batch, and the number of the batch."""


class Killed(Exception):
    """The sink has committed, and the checkpoint does not have the batch yet."""


def write_rows(cursor: psycopg.Cursor, way: str, numbers: Sequence[int], batch_id: int) -> None:
    """One row more for each number, each time."""
    cursor.executemany(EFFECT, [(way, number) for number in numbers])


def write_with_epoch(
    cursor: psycopg.Cursor, way: str, numbers: Sequence[int], batch_id: int
) -> None:
    """The number of the batch is in the transaction of its effects: again, it changes nothing."""
    if cursor.execute(ADVANCE_EPOCH, (way, batch_id)).rowcount:
        write_rows(cursor, way, numbers, batch_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Each batch is one transaction. The query ends after that of number `dies_after`."""

    write: Write
    dsn: str
    name: str
    dies_after: int | None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        numbers = [int(row.value) for row in batch.collect()]
        with psycopg.connect(self.dsn) as connection, connection.cursor() as cursor:
            self.write(cursor, self.name, numbers, batch_id)
        if self.dies_after in numbers:
            raise Killed


async def read_twice(records: DataFrame, sinks: Sequence[Sink]) -> None:
    """Read a stream to its end once for each sink; each query goes on from the checkpoint of the
    one before.

    Raises:
        StreamingQueryException: a query failed by itself.
        RuntimeError: a query was not ended by its sink.
    """
    with TemporaryDirectory(prefix="hometown-lesson-") as folder:
        for sink in sinks:
            writer = records.writeStream.foreachBatch(sink).trigger(availableNow=True)
            async with running(writer, Path(folder)) as query:
                try:
                    await asyncio.to_thread(query.awaitTermination)
                except StreamingQueryException as error:
                    if Killed.__name__ not in str(error):
                        raise
                else:
                    if sink.dies_after is not None:
                        raise RuntimeError(f"{sink.name} has no effect of number {sink.dies_after}")
