"""A batch into PostgreSQL: its epoch and its cells in one transaction, so that it counts once."""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timedelta

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyspark.sql import DataFrame

from analytics_spark.job import generations, tracing
from analytics_spark.job.batch import EPOCH, CellBatch, Tally, to_batch
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.failpoints import JobFailpoint
from analytics_spark.job.generations import FIRST, Generation
from analytics_spark.job.writer import LastingWriter
from shared.runtime import failpoints, metrics, telemetry

log = logging.getLogger(__name__)

BATCHES_KEPT_MAX = 100_000
"""Rows of history for each query: half a day of batches without a pause."""

BATCH_DURATION = metrics.Histogram(
    "hometown.job.batch.duration", "s", "From the start of a batch's sink to its commit"
)
ORDERS = metrics.Counter(
    "hometown.job.orders",
    "{order}",
    "Orders in committed batches: counted, late, duplicates, cancellations or ignored; bad records",
    ["outcome"],
)

ADVANCE_EPOCH = """
    INSERT INTO epochs AS epoch (
        query_id, batch_id, buckets, watermark, latest_order_at, trace_id,
        counted, late, duplicates, cancellations, ignored, bad
    )
    VALUES (
        %(query_id)s, %(batch_id)s, %(buckets)s, %(watermark)s, %(latest_order_at)s, %(trace_id)s,
        %(counted)s, %(late)s, %(duplicates)s, %(cancellations)s, %(ignored)s, %(bad)s
    )
    ON CONFLICT (query_id) DO UPDATE
    SET batch_id = excluded.batch_id,
        watermark = greatest(epoch.watermark, excluded.watermark),
        latest_order_at = greatest(epoch.latest_order_at, excluded.latest_order_at),
        trace_id = excluded.trace_id,
        committed_at = excluded.committed_at,
        counted = epoch.counted + excluded.counted,
        late = epoch.late + excluded.late,
        duplicates = epoch.duplicates + excluded.duplicates,
        cancellations = epoch.cancellations + excluded.cancellations,
        ignored = epoch.ignored + excluded.ignored,
        bad = epoch.bad + excluded.bad
    WHERE epoch.batch_id < excluded.batch_id
"""

INSERT_BATCH = """
    INSERT INTO batches (
        query_id, batch_id, offsets, watermark, trace_id,
        hours, milliseconds,
        counted, late, duplicates, cancellations, ignored, bad
    )
    VALUES (
        %(query_id)s, %(batch_id)s, %(offsets)s, %(watermark)s, %(trace_id)s,
        %(hours)s, %(milliseconds)s,
        %(counted)s, %(late)s, %(duplicates)s, %(cancellations)s, %(ignored)s, %(bad)s
    )
"""

FORGET_BATCHES = """
    DELETE FROM batches
    WHERE query_id = %(query_id)s
      AND batch_id <= %(batch_id)s - %(kept)s
"""

COPY_DELTAS = "COPY deltas FROM STDIN (FORMAT csv)"

ADD_DELTAS = """
    INSERT INTO cells AS cell (
        hour, item_id, item_type, address, gender, user_id, purchases, quantity, cents
    )
    SELECT hour, item_id, item_type, address, gender, user_id, purchases, quantity, cents
    FROM deltas
    ON CONFLICT (hour, user_id, item_id, item_type, address, gender) DO UPDATE
    SET purchases = cell.purchases + excluded.purchases,
        quantity = cell.quantity + excluded.quantity,
        cents = cell.cents + excluded.cents
"""

# An empty cell is deleted, so that the table is a function of the events alone: a rebuild has equal
# rows.
DELETE_EMPTY = """
    DELETE FROM cells AS cell
    USING deltas
    WHERE deltas.purchases < 0
      AND cell.purchases = 0
      AND (cell.hour, cell.user_id, cell.item_id, cell.item_type, cell.address, cell.gender)
        = (deltas.hour, deltas.user_id, deltas.item_id, deltas.item_type, deltas.address,
           deltas.gender)
"""


def make_sink(
    writer: LastingWriter,
    checkpoint: Checkpoint,
    buckets: int,
    write_dead_letter: Callable[[pa.Table], None],
    generation: Generation = FIRST,
    *,
    is_repeated: bool = False,
) -> Callable[[DataFrame, int], None]:
    """Make a function for foreachBatch; an error ends the query, and rolls back the batch.

    `write_dead_letter` stores a batch's bad records elsewhere before the batch is committed. What
    `is_repeated` is the job's own business: its bad records, and the traces of its orders.
    """

    count_orders(Tally())

    def sink(frame: DataFrame, batch_id: int) -> None:
        began_at = time.time_ns()
        # One action only: a second one would run the operator again, on its previous state.
        batch = to_batch(frame.collect(), batch_id, checkpoint, buckets)
        failpoints.hit(JobFailpoint.BATCH_RECEIVED)
        if is_repeated:
            batch = replace(batch, samples=batch.samples[:0])
        elif batch.bad_records.num_rows:
            write_dead_letter(batch.bad_records)
        merge(writer, batch, began_at, generation)

    return sink


def merge(writer: LastingWriter, batch: CellBatch, began_at: int, generation: Generation) -> None:
    """Apply a batch inside its span, and then add spans to the traces of its sampled orders."""
    with tracing.batch_span(batch.batch_id, batch.samples, began_at) as span:
        trace_id = tracing.get_trace_id(span)
        applied = writer.run(
            lambda connection: apply(connection, batch, trace_id, generation, began_at)
        )
    if applied:
        seconds = (time.time_ns() - began_at) / 1e9
        BATCH_DURATION.record(seconds)
        count_orders(batch.tally)
        log.info(
            "counted",
            extra={
                "batch_id": batch.batch_id,
                "offsets": batch.offsets,
                "seconds": seconds,
                **asdict(batch.tally),
                **telemetry.ids_of(span),
            },
        )
    tracing.record_counted(batch.batch_id, batch.samples, span)


def count_orders(tally: Tally) -> None:
    for outcome, number in asdict(tally).items():
        ORDERS.add(number, outcome)


def apply(
    connection: psycopg.Connection,
    batch: CellBatch,
    trace_id: str,
    generation: Generation = FIRST,
    began_at: int | None = None,
) -> bool:
    """Apply a batch in one transaction; False, and nothing changes, when it was applied before.

    The deltas are exact only because the epoch advances in the same transaction: without it, a
    batch that Spark runs again after a crash would be added twice.

    Raises:
        generations.OtherGeneration: the tables were shown, hidden or dropped; nothing changes.
    """
    values = {
        **asdict(batch.tally),
        "query_id": batch.query_id,
        "batch_id": batch.batch_id,
        "buckets": batch.buckets,
        "offsets": json.dumps(batch.offsets),
        "watermark": batch.watermark,
        "latest_order_at": batch.latest_order_at,
        "trace_id": trace_id,
        "hours": get_changed_hours(batch.deltas),
        "kept": BATCHES_KEPT_MAX,
    }
    with connection.transaction(), connection.cursor() as cursor:
        generations.require_unchanged(cursor, generation)
        cursor.execute(ADVANCE_EPOCH, values)
        if cursor.rowcount == 0:
            return False
        if batch.deltas.num_rows:
            copy_deltas(cursor, batch.deltas)
            add_deltas(cursor, batch.deltas)
        cursor.execute(FORGET_BATCHES, values)
        cursor.execute(INSERT_BATCH, values | {"milliseconds": get_milliseconds_since(began_at)})
        failpoints.hit(JobFailpoint.CELLS_WRITTEN)
    failpoints.hit(JobFailpoint.CELLS_COMMITTED)
    return True


def get_changed_hours(deltas: pa.Table) -> list[datetime]:
    return [EPOCH + timedelta(milliseconds=each) for each in pc.unique(deltas["hour"]).to_pylist()]


def get_milliseconds_since(began_at: int | None) -> int | None:
    return None if began_at is None else (time.time_ns() - began_at) // 1_000_000


def copy_deltas(cursor: psycopg.Cursor, deltas: pa.Table) -> None:
    with telemetry.current_span("copy deltas"):
        hours = deltas["hour"].cast(pa.timestamp("ms", "UTC"))
        # One chunk: the writer of pyarrow 26 writes garbage after an empty chunk of times.
        rows = deltas.set_column(0, "hour", hours).combine_chunks()
        text = pa.BufferOutputStream()
        csv.write_csv(rows, text, csv.WriteOptions(include_header=False))
        with cursor.copy(COPY_DELTAS) as copy:
            copy.write(text.getvalue().to_pybytes())


def add_deltas(cursor: psycopg.Cursor, deltas: pa.Table) -> None:
    with telemetry.current_span("upsert cells"):
        cursor.execute(ADD_DELTAS)
        if pc.min(deltas["purchases"]).as_py() < 0:
            cursor.execute(DELETE_EMPTY)
