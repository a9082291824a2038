"""Spark's sink with and without an epoch: a batch that was not checkpointed comes again."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import psycopg
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

RECORDS_PER_BATCH = 100
TABLES = """
    CREATE TABLE IF NOT EXISTS effects_of_ways (way text, number integer);
    CREATE TABLE IF NOT EXISTS epochs_of_ways (way text PRIMARY KEY, batch_id bigint NOT NULL);
"""
INSERT = "INSERT INTO effects_of_ways VALUES (%s, %s)"
ADVANCE_EPOCH = """
    INSERT INTO epochs_of_ways AS epoch VALUES (%s, %s)
    ON CONFLICT (way) DO UPDATE SET batch_id = excluded.batch_id
    WHERE epoch.batch_id < excluded.batch_id
"""

Sink = Callable[[DataFrame, int], None]


class Died(Exception):
    """The sink has committed, and Spark has not noted it yet."""


def write_rows(dsn: str, way: str, dies_in: int | None) -> Sink:
    """Each batch is one transaction, which does not know whether it was there before."""

    def write(batch: DataFrame, batch_id: int) -> None:
        with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
            cursor.executemany(INSERT, [(way, int(row.value)) for row in batch.collect()])
        die_if_due(batch_id, dies_in)

    return write


def write_with_epoch(dsn: str, way: str, dies_in: int | None) -> Sink:
    """The number of the batch is in the same transaction: again, it changes nothing."""

    def write(batch: DataFrame, batch_id: int) -> None:
        with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
            if cursor.execute(ADVANCE_EPOCH, (way, batch_id)).rowcount:
                cursor.executemany(INSERT, [(way, int(row.value)) for row in batch.collect()])
        die_if_due(batch_id, dies_in)

    return write


def die_if_due(batch_id: int, dies_in: int | None) -> None:
    if batch_id == dies_in:
        raise Died


def read_all(
    session: SparkSession, servers: str, topic: str, make_sink: Callable[[int | None], Sink]
) -> None:
    """Read the topic to its end; the query dies once, and starts again from its checkpoint."""
    records = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", RECORDS_PER_BATCH)
        .load()
        .selectExpr("CAST(value AS string) AS value")
    )
    with tempfile.TemporaryDirectory(prefix="hometown-lesson-") as folder:
        for dies_in in (2, None):
            query = (
                records.writeStream.foreachBatch(make_sink(dies_in))
                .option("checkpointLocation", Path(folder).as_uri())
                .trigger(availableNow=True)
                .start()
            )
            try:
                query.awaitTermination()
            except StreamingQueryException:
                if dies_in is None:
                    raise
