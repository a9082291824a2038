"""Compares two generations: which hours differ, by how much, and what can explain it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import psycopg
from psycopg.rows import class_row

from analytics_spark.job.generations import Generation
from analytics_spark.serving.hour_queries import is_final
from shared.projections.rebuild import CONTENT

HOURS_REPORTED_MAX = 50
"""Differing hours that are reported one by one."""

TOTALS = """
    SELECT hour, count(*) AS cells, sum(purchases)::bigint AS purchases,
        sum(quantity)::bigint AS quantity, sum(cents)::bigint AS cents,
        encode(sha256(string_agg(hash, ''::bytea ORDER BY hash)), 'hex') AS hash
    FROM (
        SELECT hour, purchases, quantity, cents,
            sha256(convert_to(each::text, 'UTF8')) AS hash
        FROM {schema}.cells AS each
    ) AS hashed
    GROUP BY hour
"""

DIFFERENT_HOURS = """
    SELECT hour,
        coalesce(live.cells, 0) AS live_cells, coalesce(rebuilt.cells, 0) AS rebuilt_cells,
        coalesce(rebuilt.purchases, 0) - coalesce(live.purchases, 0) AS purchases,
        coalesce(rebuilt.quantity, 0) - coalesce(live.quantity, 0) AS quantity,
        coalesce(rebuilt.cents, 0) - coalesce(live.cents, 0) AS cents
    FROM ({live}) AS live
    FULL JOIN ({rebuilt}) AS rebuilt USING (hour)
    WHERE live.hash IS DISTINCT FROM rebuilt.hash
    ORDER BY hour
"""

STATE = """
    SELECT coalesce(max(counted), 0) AS counted, coalesce(max(late), 0) AS late,
        max(watermark) AS watermark,
        (
            SELECT coalesce(sum((partition.value->>1)::bigint), 0)::bigint
            FROM (SELECT offsets FROM {schema}.batches ORDER BY batch_id DESC LIMIT 1) AS newest,
                jsonb_each(newest.offsets) AS topic, jsonb_each(topic.value) AS partition
        ) AS records
    FROM {schema}.epochs
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentHour:
    """An hour's totals in the rebuild minus those in the live tables."""

    hour: datetime
    live_cells: int
    rebuilt_cells: int
    purchases: int
    quantity: int
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How far a generation is: orders counted, orders dropped as late, records read."""

    counted: int
    late: int
    watermark: datetime | None
    records: int


def report(connection: psycopg.Connection, live: Generation, rebuilt: Generation) -> Iterator[str]:
    """The comparison as lines of text, from one snapshot of both."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        states = read_state(connection, live), read_state(connection, rebuilt)
        contents = read_content(connection, live), read_content(connection, rebuilt)
        hours = find_different_hours(connection, live, rebuilt)
    for name, content in zip(("live", "rebuild"), contents, strict=True):
        yield f"{name}: {content[0]} cells, {content[1]}"
    yield from format_hours(hours, *states)
    yield from format_states(*states)


def format_hours(hours: list[DifferentHour], live: State, rebuilt: State) -> Iterator[str]:
    if not hours:
        yield "all hours are equal"
    for each in hours[:HOURS_REPORTED_MAX]:
        final = is_final(each.hour, live.watermark)
        yield (
            f"{each.hour:%Y-%m-%dT%H} {'final' if final else 'not final'}:"
            f" {each.rebuilt_cells} cells instead of {each.live_cells},"
            f" purchases {each.purchases:+}, quantity {each.quantity:+},"
            f" amount {Decimal(each.cents).scaleb(-2):+}"
        )
    if hours:
        yield f"{len(hours)} hours differ"


def format_states(live: State, rebuilt: State) -> Iterator[str]:
    """Reasons of a difference: where batches end decides which late orders are dropped."""
    yield (
        f"live has counted {live.counted} orders and dropped {live.late} as late,"
        f" the rebuild {rebuilt.counted} and {rebuilt.late}"
    )
    if live.late > rebuilt.late:
        yield f"the rebuild accepted {live.late - rebuilt.late} orders that live dropped as late"
    if live.records != rebuilt.records:
        yield (
            f"the rebuild has read {rebuilt.records} records and live {live.records}: hours that"
            " are not final may differ by them"
        )


def find_different_hours(
    connection: psycopg.Connection, live: Generation, rebuilt: Generation
) -> list[DifferentHour]:
    sql = DIFFERENT_HOURS.format(
        live=TOTALS.format(schema=live.schema), rebuilt=TOTALS.format(schema=rebuilt.schema)
    )
    with connection.cursor(row_factory=class_row(DifferentHour)) as cursor:
        return cursor.execute(sql.encode()).fetchall()


def read_state(connection: psycopg.Connection, generation: Generation) -> State:
    with connection.cursor(row_factory=class_row(State)) as cursor:
        state = cursor.execute(STATE.format(schema=generation.schema).encode()).fetchone()
    assert state is not None  # an aggregate without GROUP BY always has a row
    return state


def read_content(connection: psycopg.Connection, generation: Generation) -> tuple[int, str]:
    """How many cells there are, and a hash over all columns of all of them."""
    row = connection.execute(CONTENT.format(table=f"{generation.schema}.cells").encode()).fetchone()
    assert row is not None  # an aggregate without GROUP BY always has a row
    return row[0], row[1]
