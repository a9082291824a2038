"""The cells by `definition.sql` over the raw records: DuckDB, no stream, no state, no batches.

The job shares no code with it, only the meaning. What a live job dropped or left alone depends on
when it read what, so the query also gets the batch that read each record, and the watermark of
that batch.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

import analytics_spark

DEFINITION = Path(analytics_spark.__file__).with_name("definition.sql")

NEVER_MILLISECONDS = -1
"""The watermark of a batch that had none."""

RECORDS = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "key": pa.binary(),
        "value": pa.binary(),
        "type": pa.string(),
        "seq": pa.int64(),
        "recorded_at": pa.int64(),
    }
)
"""Records as Kafka has them; times in milliseconds. `type` is null where it is not understood."""

BATCHES = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "first": pa.int64(),
        "end": pa.int64(),
        "batch_id": pa.int64(),
        "watermark": pa.int64(),
    }
)
"""Which offsets each batch read; `end` is not included."""

CELLS = pa.schema(
    {
        "hour": pa.int64(),
        "item_id": pa.string(),
        "item_type": pa.string(),
        "address": pa.string(),
        "gender": pa.string(),
        "user_id": pa.string(),
        "purchases": pa.int64(),
        "quantity": pa.int64(),
        "cents": pa.int64(),
    }
)


SALES = pa.schema(
    {
        "hour": pa.int64(),
        "item_id": pa.string(),
        "item_type": pa.string(),
        "origin": pa.string(),
        "purchases": pa.int64(),
        "quantity": pa.int64(),
        "cents": pa.int64(),
    }
)

RESULT = "\n-- Without cells there is one row"
"""Where the last step of the definition begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The cells and the sales (rows of CELLS and SALES), and how many orders were too late, and how
    many counted."""

    cells: pa.Table
    sales: pa.Table
    late: int
    counted: int


def answer(records: pa.Table, batches: pa.Table) -> Answer:
    """The cells that a job has after it read `records` (RECORDS) in `batches` (BATCHES)."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("records", records)
        database.register("batches", batches)
        definition = DEFINITION.read_text()
        found = database.sql(definition).to_arrow_table()
        steps, _, _ = definition.partition(RESULT)
        sales = database.sql(f"{steps}\nSELECT * FROM sales").to_arrow_table()
    cells = found.filter(pc.is_valid(found["hour"])).select(CELLS.names).cast(CELLS)
    return Answer(
        cells=cells,
        sales=sales.select(SALES.names).cast(SALES),
        late=found["late"][0].as_py(),
        counted=found["counted"][0].as_py(),
    )


def differences(wanted: pa.Table, got: pa.Table) -> Sequence[str]:
    """A line for each row that is not the same in both tables (rows of CELLS, or of SALES)."""
    right, found = rows(wanted), rows(got)
    wrong = [(cell, "expected") for cell in (right - found).elements()]
    wrong += [(cell, "found") for cell in (found - right).elements()]
    return [f"{word} {cell}" for cell, word in sorted(wrong)]


def rows(found: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(zip(*found.to_pydict().values(), strict=True))
