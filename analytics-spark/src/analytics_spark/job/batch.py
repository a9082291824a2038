"""A batch of cell deltas: the operator's rows, one for each bucket, combined."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import Row

from analytics_spark.job.blobs import from_bytes
from analytics_spark.job.cells import DELTAS, sum_cells
from analytics_spark.job.checkpoint import Checkpoint, Ranges
from analytics_spark.job.orders import SAMPLES
from analytics_spark.job.records import BAD

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Numbers of orders and records in a batch, by outcome."""

    counted: int = 0
    late: int = 0
    duplicates: int = 0
    cancellations: int = 0
    ignored: int = 0
    bad: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBatch:
    """All changes of one batch, as the sink writes them."""

    query_id: str
    batch_id: int
    buckets: int
    offsets: Ranges
    watermark: datetime | None
    latest_order_at: datetime | None
    tally: Tally
    deltas: pa.Table
    samples: pa.Table
    bad_records: pa.Table


def to_batch(rows: Sequence[Row], batch_id: int, checkpoint: Checkpoint, buckets: int) -> CellBatch:
    """Combine the operator's rows, one for each bucket that had input."""
    query_id = checkpoint.query_id
    assert query_id is not None  # Spark writes it before the first batch
    return CellBatch(
        query_id=query_id,
        batch_id=batch_id,
        buckets=buckets,
        offsets=checkpoint.get_ranges(batch_id),
        watermark=to_instant(max((row["watermark"] for row in rows), default=None)),
        latest_order_at=to_instant(
            max((row["latest"] for row in rows if row["latest"] is not None), default=None)
        ),
        tally=Tally(
            **{field.name: sum(row[field.name] for row in rows) for field in fields(Tally)}
        ),
        # Cells without a user come from several buckets.
        deltas=sum_cells([DELTAS.empty_table(), *(from_bytes(row["cells"]) for row in rows)]),
        samples=pa.concat_tables(
            [SAMPLES.empty_table(), *(from_bytes(row["samples"]) for row in rows)]
        ),
        bad_records=pa.concat_tables(
            [BAD.empty_table(), *(from_bytes(row["bad_records"]) for row in rows)]
        ),
    )


def to_instant(milliseconds: int | None) -> datetime | None:
    """None also for 0, Spark's watermark before the first one."""
    return EPOCH + timedelta(milliseconds=milliseconds) if milliseconds else None
