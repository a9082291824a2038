"""The stateless stage: Kafka's records, packed into one Arrow blob for each bucket of users.

Spark passes rows to a Python state operator one by one, which would cost more than everything else
together. So the operator gets no rows of single orders, but a few blobs of many orders.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics_spark.job.blobs import column, to_bytes
from analytics_spark.job.records import check
from analytics_spark.job.topics import Kind, Topic
from analytics_spark.job.versions import Integers

ROWS_MAX = 20_000
"""Records that a task holds before it packs them."""

BYTES_MAX = 64 * 1024 * 1024
"""Bytes that a task holds before it packs them: a few big records need as much as many small ones.
The last fetch can add FETCH_BYTES_MAX of `log_reader`."""

PACKED = "bucket int, kind string, event_time timestamp, body binary"
PACKED_ARROW = pa.schema(
    {
        "bucket": pa.int32(),
        "kind": pa.string(),
        "event_time": pa.timestamp("us", "UTC"),
        "body": pa.binary(),
    }
)

PackedRow = tuple[int, Kind, int | None, bytes | None]


def pack(
    batches: Iterator[pa.RecordBatch], *, topic: Topic, buckets: int
) -> Iterator[pa.RecordBatch]:
    """The packed rows of one topic's records in one task, which have the columns of
    `records.check`; they are held until they reach ROWS_MAX or BYTES_MAX."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if is_full(held):
            yield from pack_held(held, topic=topic, buckets=buckets)
            held = []
    yield from pack_held(held, topic=topic, buckets=buckets)


def is_full(held: list[pa.RecordBatch]) -> bool:
    rows = sum(int(batch.num_rows) for batch in held)
    size = sum(int(batch.nbytes) for batch in held)
    return rows >= ROWS_MAX or size >= BYTES_MAX


def pack_held(
    held: list[pa.RecordBatch], *, topic: Topic, buckets: int
) -> Iterator[pa.RecordBatch]:
    if not any(batch.num_rows for batch in held):
        return
    checked = check(topic, pa.Table.from_batches(held).combine_chunks())
    rows = list(to_packed_rows(topic, checked.rows, buckets))
    if checked.bad.num_rows:
        rows.append((0, Kind.BAD, None, to_bytes(checked.bad)))
    if rows:
        columns = zip(zip(*rows, strict=True), PACKED_ARROW.types, strict=True)
        arrays = [pa.array(list(values), type_) for values, type_ in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=PACKED_ARROW)


def to_packed_rows(topic: Topic, rows: pa.Table, buckets: int) -> Iterator[PackedRow]:
    """Blobs have no event time, because Spark would drop them as late: each order is checked later.

    Only the clock row moves the watermark. Changes of users and items do not: a quiet table must
    not hold it back, and one that is read from its beginning is not late.
    """
    bucket = column(rows, "bucket").to_numpy()
    plain = rows.drop_columns("bucket")
    if topic.kind is Kind.ITEMS:
        yield from replicate(plain, buckets)
        return
    for number, part in split(plain, bucket, buckets):
        yield (number, topic.kind, None, to_bytes(part))
    if topic.kind is Kind.ORDERS and rows.num_rows:
        latest = pc.max(rows["ordered_at"]).as_py() * 1000
        yield (0, Kind.CLOCK, latest, None)


def replicate(changes: pa.Table, buckets: int) -> Iterator[PackedRow]:
    """Any user can buy any item, so every bucket gets every change of an item."""
    if changes.num_rows:
        body = to_bytes(changes)
        for number in range(buckets):
            yield (number, Kind.ITEMS, None, body)


def split(rows: pa.Table, bucket: Integers, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each bucket that has any."""
    order = np.argsort(bucket, kind="stable")
    edges = np.searchsorted(bucket[order], np.arange(buckets + 1))
    rows = rows.take(pa.array(order))
    for number, (start, end) in enumerate(pairwise(edges)):
        if start < end:
            yield number, rows.slice(start, end - start).combine_chunks()
