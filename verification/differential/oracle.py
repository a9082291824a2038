"""The cells by one plain query over the raw records: DuckDB, no stream, no state, no batches.

Nothing here is shared with the job but the meaning. What a live job dropped or left alone depends
on when it read what, so the query is told which batch read each record, and what the watermark of
that batch was.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

FUTURE_MAX_MILLISECONDS = 10 * 60 * 1000
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

READ = """
    CREATE TEMPORARY TABLE read AS
    SELECT records.*, batches.batch_id, batches.watermark,
        CASE WHEN json_valid(decode_or_null(value)) THEN decode_or_null(value)::JSON END AS said
    FROM records
    JOIN batches
      ON batches.topic = records.topic AND batches.partition = records.partition
     AND records.offset >= batches.first AND records.offset < batches."end"
"""

DECODE = """
    CREATE TEMPORARY MACRO decode_or_null(bytes) AS try(decode(bytes))
"""

# A fact of a user or an item that holds from an instant on; none for a deleted user.
FACTS = """
    CREATE TEMPORARY TABLE facts AS
    SELECT topic, batch_id, watermark, seq,
        said->>'$.{key}' AS id,
        epoch_ms(try_cast(said->>'$.effective_at' AS TIMESTAMPTZ)) AS since,
        type = 'user-deleted' AS gone,
        said->>'$.{place}' AS place,
        said->>'$.{kind}' AS kind
    FROM read
    WHERE topic = '{topic}' AND type IN ({types})
      AND said->>'$.{key}' = decode_or_null(key)
      AND since >= 0 AND seq > 0
      AND (gone OR (place IS NOT NULL AND kind IS NOT NULL))
"""

USERS = FACTS.replace("TABLE facts", "TABLE user_facts").format(
    topic="users.v1",
    key="user_id",
    place="address",
    kind="gender",
    types="'user-registered', 'user-moved', 'user-deleted'",
)
ITEMS = FACTS.replace("TABLE facts", "TABLE item_facts").format(
    topic="items.v1",
    key="item_id",
    place="origin",
    kind="type",
    types="'item-listed', 'item-origin-corrected'",
)

ORDER_EVENTS = f"""
    CREATE TEMPORARY TABLE order_events AS
    SELECT said->>'$.order_id' AS order_id, said->>'$.user_id' AS user_id, type, "offset",
        batch_id, watermark, said->'$.lines' AS lines,
        (said->>'$.was_confirmed')::BOOLEAN AS was_confirmed,
        epoch_ms(try_cast(said->>'$.ordered_at' AS TIMESTAMPTZ)) AS ordered_at
    FROM read
    WHERE topic = 'orders.v1' AND type IN ('order-confirmed', 'order-cancelled')
      AND said->>'$.user_id' = decode_or_null(key)
      AND order_id IS NOT NULL AND json_array_length(lines) > 0
      AND ordered_at BETWEEN 0 AND recorded_at + {FUTURE_MAX_MILLISECONDS}
"""

# An order counts once, from its first confirmation that was not late; a cancellation that was not
# late takes it out again.
ORDERS = """
    CREATE TEMPORARY TABLE orders AS
    WITH in_time AS (SELECT * FROM order_events WHERE ordered_at > watermark),
    confirmed AS (
        SELECT * FROM in_time
        WHERE type = 'order-confirmed'
        QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY "offset") = 1
    )
    SELECT * FROM confirmed
    WHERE NOT EXISTS (
        SELECT 1 FROM in_time AS cancelled
        WHERE cancelled.order_id = confirmed.order_id
          AND cancelled.type = 'order-cancelled' AND cancelled.was_confirmed
          AND cancelled."offset" > confirmed."offset"
    )
"""

LINES = """
    CREATE TEMPORARY TABLE lines AS
    SELECT row_number() OVER () AS line, order_id, user_id, ordered_at, batch_id,
        each->>'$.item_id' AS item_id,
        (each->>'$.quantity')::BIGINT AS quantity,
        ((each->>'$.unit_price')::DECIMAL(18, 2) * 100)::BIGINT AS cents
    FROM (SELECT *, unnest(lines::JSON[]) AS each FROM orders)
"""

# What held at an order's time, of all that was known when it was read, or known later while it
# could still be corrected.
HELD = """
    CREATE TEMPORARY TABLE held_{what} AS
    SELECT lines.line, place, kind
    FROM lines
    JOIN {what}_facts AS fact
      ON fact.id = lines.{what}_id AND fact.since <= lines.ordered_at
     AND (fact.batch_id <= lines.batch_id OR lines.ordered_at > fact.watermark)
    QUALIFY row_number() OVER (PARTITION BY lines.line ORDER BY since DESC, seq DESC) = 1
"""

COUNT = """
    SELECT hour, item_id, item_type, address, gender, user_id, count(*)::BIGINT AS purchases,
        sum(quantity)::BIGINT AS quantity, sum(quantity * cents)::BIGINT AS cents
    FROM (
        SELECT ordered_at - ordered_at % 3600000 AS hour, quantity, cents,
            coalesce(held_user.place = held_item.place, false) AS local,
            CASE WHEN local THEN item_id ELSE '' END AS item_id,
            CASE WHEN local THEN user_id ELSE '' END AS user_id,
            coalesce(held_item.kind, '') AS item_type,
            coalesce(held_user.place, '') AS address,
            coalesce(held_user.kind, '') AS gender
        FROM lines
        LEFT JOIN held_user USING (line)
        LEFT JOIN held_item USING (line)
    )
    GROUP BY ALL
"""

TALLY = """
    SELECT (SELECT count(*) FROM order_events
            WHERE type = 'order-confirmed' AND ordered_at <= watermark),
        (SELECT count(DISTINCT order_id) FROM order_events
         WHERE type = 'order-confirmed' AND ordered_at > watermark)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The cells (rows of CELLS), and how many orders were too late, and how many counted."""

    cells: pa.Table
    late: int
    counted: int


def answer(records: pa.Table, batches: pa.Table) -> Answer:
    """The cells that a job has after it read `records` (RECORDS) in `batches` (BATCHES)."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("records", records)
        database.register("batches", batches)
        for statement in (
            DECODE,
            READ,
            USERS,
            ITEMS,
            ORDER_EVENTS,
            ORDERS,
            LINES,
            HELD.format(what="user"),
            HELD.format(what="item"),
        ):
            database.execute(statement)
        late, counted = database.execute(TALLY).fetchall()[0]
        cells = database.sql(COUNT).to_arrow_table().cast(CELLS)
    return Answer(cells=cells, late=late, counted=counted)


def differences(wanted: pa.Table, got: pa.Table) -> Sequence[str]:
    """A line for each cell that is not the same in both tables (rows of CELLS)."""
    right, found = rows(wanted), rows(got)
    wrong = [(cell, "expected") for cell in (right - found).elements()]
    wrong += [(cell, "found") for cell in (found - right).elements()]
    return [f"{word} {cell}" for cell, word in sorted(wrong)]


def rows(cells: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(zip(*cells.select(CELLS.names).to_pydict().values(), strict=True))
