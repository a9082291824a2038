"""One history through Kafka, Spark and PostgreSQL, compared with the oracle."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import psycopg
import pyarrow as pa
from pyspark.sql import SparkSession

from analytics_spark.job import dead_letters, query, sink, writer
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.settings import JobSettings
from shared.eventsourcing.event_store import get_partition
from shared.messaging import kafka, wire
from shared.messaging.wire import OutgoingRecord
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id
from verification.differential import oracle
from verification.differential.oracle import BATCHES, CELLS, NEVER_MILLISECONDS, RECORDS
from verification.differential.random_history import RandomHistory, Record

READ_SECONDS_MAX = 600
PAGE_RECORDS = 10_000

READ_CELLS = f"""
    SELECT (extract(epoch FROM hour) * 1000)::bigint AS hour, {", ".join(CELLS.names[1:])}
    FROM cells
"""

READ_BATCHES = """
    SELECT topic, partition::int, (range->>0)::bigint, (range->>1)::bigint, batch_id,
        coalesce((extract(epoch FROM watermark) * 1000)::bigint, %s)
    FROM batches,
        jsonb_each(offsets) AS of_topic (topic, ranges),
        jsonb_each(ranges) AS of_partition (partition, range)
"""

READ_TALLY = "SELECT late, counted, bad FROM epochs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How the work is cut, which must not change the cells."""

    records_per_trigger: int
    shuffle_partitions: int
    buckets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`wrong` has a line for each wrong cell and count."""

    cells: int
    batches: int
    late: int
    counted: int
    bad: int
    wrong: Sequence[str]
    blind: int
    """Cells that would be wrong if no order were late: not 0 if the history has cases to find."""


def try_history(
    spark: SparkSession, settings: JobSettings, history: RandomHistory, setup: Setup
) -> Outcome:
    """Publish a history to empty topics, count it in one run with empty tables, and compare.

    `settings` has the addresses; the checkpoint's folder must not exist.
    """
    records = asyncio.run(publish(settings.kafka_bootstrap_servers, history))
    settings = settings.model_copy(
        update={
            "records_per_trigger_max": setup.records_per_trigger,
            # Otherwise all users and items would be known before the second batch of orders.
            "table_records_per_trigger_max": setup.records_per_trigger,
            "buckets": setup.buckets,
            "shuffle_partitions": setup.shuffle_partitions,
        }
    )
    session = spark.newSession()  # with its own settings
    session.conf.set("spark.sql.shuffle.partitions", setup.shuffle_partitions)
    count_all(session, settings)
    with psycopg.connect(settings.database_dsn) as connection:
        return compare_with_oracle(connection, records)


def count_all(spark: SparkSession, settings: JobSettings) -> None:
    """Run the job over all current records of the topics. Raises the query's error."""
    dsn, buckets = settings.database_dsn, settings.buckets
    checkpoint = Checkpoint(settings.checkpoint_dir)
    with writer.open_lasting_writer(dsn, checkpoint, buckets) as opened:
        write_dead_letter = partial(dead_letters.write_dead_letter, settings.brokers)
        write = sink.make_sink(opened, checkpoint, buckets, write_dead_letter)
        running = query.start(query.outcomes(spark, settings), write, settings, available_now=True)
        try:
            if not running.awaitTermination(READ_SECONDS_MAX):
                raise TimeoutError(f"the history was not read within {READ_SECONDS_MAX} s")
        finally:
            running.stop()


def compare_with_oracle(connection: psycopg.Connection, records: pa.Table) -> Outcome:
    """Compare the tables with the oracle's answer for the records."""
    cells = table(connection.execute(READ_CELLS).fetchall(), CELLS)
    batches = table(connection.execute(READ_BATCHES, [NEVER_MILLISECONDS]).fetchall(), BATCHES)
    row = connection.execute(READ_TALLY).fetchone()
    assert row is not None
    late, counted, bad = row
    right = oracle.answer(records, batches)
    wrong = list(oracle.differences(right.cells, cells))
    if (late, counted) != (right.late, right.counted):
        wrong.append(f"{counted} counted and {late} late; expected {right.counted}, {right.late}")
    never = pa.array([NEVER_MILLISECONDS] * batches.num_rows, pa.int64())
    place = batches.schema.get_field_index("watermark")
    patient = oracle.answer(records, batches.set_column(place, "watermark", never))
    return Outcome(
        cells=cells.num_rows,
        batches=len(set(batches["batch_id"].to_pylist())),
        late=late,
        counted=counted,
        bad=bad,
        wrong=wrong,
        blind=len(oracle.differences(patient.cells, cells)),
    )


def table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


async def publish(bootstrap_servers: str, history: Iterable[Record]) -> pa.Table:
    """Send the records in their order; return them as rows of RECORDS."""
    producer = kafka.create_producer(Brokers(bootstrap_servers), "random-history")
    await producer.start()
    try:
        kept: list[Record] = list(history)
        now = time.time_ns() // 1_000_000
        outgoing = [to_outgoing(record, now) for record in kept]
        offsets: list[int] = []
        for page in pages(outgoing):
            batches = await kafka.publish(producer, page)
            offsets += kafka.iterate_offsets(batches, [record[:2] for record in page])
    finally:
        await kafka.close(producer)
    rows = [
        (sent.topic, sent.partition, offset, sent.key, sent.value, record.type, record.seq, now)
        for record, sent, offset in zip(kept, outgoing, offsets, strict=True)
    ]
    return table(rows, RECORDS)


def pages(records: Sequence[OutgoingRecord]) -> Iterator[Sequence[OutgoingRecord]]:
    for start in range(0, len(records), PAGE_RECORDS):
        yield records[start : start + PAGE_RECORDS]


def to_outgoing(record: Record, milliseconds: int) -> OutgoingRecord:
    headers = {
        "ce_id": str(new_id()),
        "ce_type": record.type,
        "ce_schemaversion": "1",
        "ce_streamversion": str(record.seq),
    }
    return OutgoingRecord(
        topic=record.topic,
        partition=get_partition(record.topic, record.key),
        key=record.key.encode(),
        value=record.value,
        headers=wire.pack(wire.to_headers(headers)),
        milliseconds=milliseconds,
    )
