"""Services plan a statement once, without its values: it still reads by an index what it needs.

Also if the plan was made while the tables were empty, as in the first minute of a new stack.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import asyncpg
import pytest

import orders_svc.order.admission
import orders_svc.order.publications
import users_svc.confirmed_orders
import users_svc.user_profiles
from analytics_spark.serving import change_feed, hour_queries
from local_stack.testing import new_database
from orders_svc.item import catalogue
from orders_svc.order import summaries
from shared.eventsourcing import event_log, event_store, locked_streams
from shared.inbox import inbox, parked
from shared.projections import versions
from shared.runtime import postgres
from shared.web import idempotency
from test_support.plans import Scan, count_rows, explain, prepare

PACKAGES = ("shared", "users_svc", "orders_svc", "analytics_spark")
ROWS = 100_000
PENDING = 1_000
CELLS_PER_HOUR = 100
PAGE = 50
MIDDLE = ROWS // 2

# Ids in the sequence of their number.
CREATE_IDS = """
    CREATE FUNCTION id(number integer) RETURNS uuid IMMUTABLE
    RETURN lpad(to_hex(number), 32, '0')::uuid
"""

FILL = f"""
    INSERT INTO streams
    SELECT id(n), 'order', CASE WHEN n > {MIDDLE} AND n <= {MIDDLE + PENDING} THEN 1 ELSE 2 END, 1
    FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO events (stream_id, version, event_id, type, schema_version, data, metadata,
                        recorded_at)
    SELECT id(n), version, id(n), 'x', 1, json_build_object('user_id', id(n)), '{{}}', now()
    FROM generate_series(1, {ROWS}) AS n, generate_series(1, 2) AS version;
    INSERT INTO consumed_versions SELECT 'worker', id(n), 1 FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO parked_streams
    SELECT 'worker', id(n), 'x', 'x', now() FROM generate_series(1, {PENDING}) AS n;
    INSERT INTO idempotency_keys
    SELECT 'x', n, '', 200, '{{}}', '', now() FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO order_summaries
    SELECT id(n), id(n % 1000), CASE WHEN n <= {PENDING} THEN 'pending' ELSE 'confirmed' END, NULL,
        1, now(), timestamptz '2026-01-01Z' + n * interval '1 second', 1
    FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO publications
    SELECT id(n), version, 0, n FROM generate_series(1, {ROWS}) AS n, generate_series(1, 2) version;
    INSERT INTO catalogue
    SELECT id(n), 'x', 'x', 'x', 1, false, now(), now(), 1 FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO user_profiles
    SELECT id(n), n % 1000, 'x', 1, 0, false, now(), 1 FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO served_versions (read_model, version)
    SELECT CASE WHEN n = 7 THEN 'x' ELSE 'y' END, n FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO confirmed_orders
    SELECT id(n), id(n), now() FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO generation_1.cells
    SELECT timestamptz '2026-01-01Z' + (n / {CELLS_PER_HOUR}) * interval '1 hour', n, 'x', 'x', 'x',
        'x', 1, 1, 1
    FROM generate_series(0, {ROWS} - 1) AS n;
"""

TABLES = """
    SELECT oid::regclass::text
    FROM pg_class
    WHERE relkind = 'r' AND relnamespace IN ('public'::regnamespace, 'generation_1'::regnamespace)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A statement with values in SQL, and how many rows it may touch."""

    statement: str
    arguments: str
    rows_max: int


SOME = f"ARRAY[id({MIDDLE}), id(7), id(-1)]"
TOPICS = "ARRAY['x', 'x', 'x']"
JSONS = "'{}', '{}', '{}'"
QUERIES: Mapping[str, Query] = {
    "events of a stream": Query(
        statement=event_store.READ, arguments=f"id({MIDDLE}), 'order', 1, NULL", rows_max=4
    ),
    "versions of streams": Query(
        statement=event_store.VERSIONS, arguments=f"{SOME}, 'order'", rows_max=3
    ),
    "events of one stream": Query(
        statement=event_log.READ, arguments=f"id({MIDDLE}), 0, 50", rows_max=2
    ),
    "events of streams from a version on": Query(
        statement=event_store.READ_FROM, arguments=f"{SOME}, ARRAY[2, 2, 2]", rows_max=3
    ),
    "streams to lock": Query(
        statement=locked_streams.LOCK, arguments=f"{SOME}, 'order'", rows_max=3
    ),
    "streams to append to": Query(
        statement=locked_streams.APPEND,
        arguments=f"""
            'order', {SOME}, ARRAY[2, 2, 0], ARRAY[3, 3, 1], ARRAY[3, 3, 1], now(), {SOME},
            ARRAY[3, 3, 1], ARRAY[{JSONS}]::json[], {SOME}, ARRAY['x', 'x', 'x'],
            ARRAY[1, 1, 1]::smallint[], ARRAY[{JSONS}]::json[], ARRAY['x', 'x', NULL],
            ARRAY[0, 0, NULL]::smallint[], ARRAY['', '', NULL]::bytea[],
            ARRAY['', '', NULL]::bytea[], ARRAY['', '', NULL]::bytea[], ARRAY['x', 'x', NULL]
        """,
        rows_max=12,
    ),
    "publications to add": Query(
        statement=orders_svc.order.publications.NOTE,
        arguments=f"{SOME}, ARRAY[3, 3, 3], ARRAY[0, 0, 0]::smallint[], ARRAY[1, 2, 3]::bigint[]",
        rows_max=3,
    ),
    "orders that are decided": Query(
        statement=summaries.DECIDED,
        arguments=f"{SOME}, ARRAY['x', 'x', 'x'], ARRAY[NULL, NULL, 'x'], ARRAY[2, 2, 2]",
        rows_max=3,
    ),
    "credit that is reserved": Query(
        statement=users_svc.user_profiles.RESERVED,
        arguments=f"{SOME}, ARRAY[1, 1, 1]::numeric[], ARRAY[2, 2, 2]",
        rows_max=6,
    ),
    "confirmed orders that are closed": Query(
        statement=users_svc.confirmed_orders.REMOVE, arguments=f"{SOME}, {SOME}", rows_max=3
    ),
    "consumed versions": Query(
        statement=inbox.READ_VERSIONS, arguments=f"'worker', {SOME}", rows_max=3
    ),
    "parked streams": Query(
        statement=parked.HOLD_SHARED, arguments=f"'worker', {SOME}", rows_max=3
    ),
    "consumed versions to write": Query(
        statement=inbox.WRITE_VERSIONS,
        arguments=f"'worker', {SOME}, ARRAY[1, 1, 0], ARRAY[2, 2, 1], {SOME}, {TOPICS}",
        rows_max=12,
    ),
    "a stored response": Query(
        statement=idempotency.LOOK_UP, arguments=f"'x', '{MIDDLE}'", rows_max=1
    ),
    "orders that are decided in time": Query(
        statement=orders_svc.order.admission.COUNT_DECIDED,
        arguments=f"id({MIDDLE}), id({MIDDLE + 100}), id({MIDDLE + 500})",
        rows_max=500,
    ),
    "orders that wait": Query(
        statement=orders_svc.order.admission.COUNT_WAITING,
        arguments=f"id({MIDDLE}), id({MIDDLE + 500}), 'worker', 'x'",
        rows_max=2 * 500 + PENDING,  # and once what is parked
    ),
    "publications": Query(
        statement=orders_svc.order.publications.OF_ORDER, arguments=f"id({MIDDLE})", rows_max=2
    ),
    "orders": Query(statement=summaries.LIST, arguments=f"NULL, NULL, NULL, {PAGE}", rows_max=PAGE),
    "a later page of orders": Query(
        statement=summaries.LIST,
        arguments=f"NULL, 'confirmed', id({MIDDLE}), {PAGE}",
        rows_max=PAGE,
    ),
    "orders of a user": Query(
        statement=summaries.LIST_OF_USER,
        arguments=f"id(7), NULL, id({MIDDLE}), {PAGE}",
        rows_max=ROWS // 1000,
    ),
    "pending orders": Query(
        statement=summaries.LIST_PENDING,
        arguments=f"NULL, 'pending', id({PENDING // 2}), {PAGE}",
        rows_max=PENDING,
    ),
    "overdue orders": Query(
        statement=summaries.OVERDUE, arguments=f"now(), NULL, NULL, {PAGE}", rows_max=PAGE + 1
    ),
    "more overdue orders": Query(
        statement=summaries.OVERDUE,
        arguments=f"now(), timestamptz '2026-01-01Z' + interval '500 s', id(500), {PAGE}",
        rows_max=PAGE + 2,
    ),
    "a number of pending orders": Query(
        statement=summaries.COUNT_PENDING, arguments=f"now(), {PAGE}", rows_max=PAGE + 1
    ),
    "items": Query(statement=catalogue.LIST, arguments=f"NULL, {PAGE}", rows_max=PAGE),
    "a later page of items": Query(
        statement=catalogue.LIST, arguments=f"id({MIDDLE}), {PAGE}", rows_max=PAGE
    ),
    "users": Query(
        statement=users_svc.user_profiles.LIST,
        arguments=f"NULL, id({MIDDLE}), {PAGE}",
        rows_max=PAGE,
    ),
    "users at an address": Query(
        statement=users_svc.user_profiles.LIST_AT_ADDRESS,
        arguments=f"'7', NULL, {PAGE}",
        rows_max=ROWS // 1000,
    ),
    "the served version of a read model": Query(
        statement=versions.NOTED, arguments="'x', ARRAY[6, 7]", rows_max=1
    ),
    "hours": Query(
        statement=hour_queries.LIST_HOURS,
        arguments="NULL, NULL, NULL, 3",
        rows_max=4 * CELLS_PER_HOUR,
    ),
    "a later page of hours": Query(
        statement=hour_queries.LIST_HOURS,
        arguments="'2026-01-02Z', '2026-02-01Z', '2026-01-10Z', 3",
        rows_max=4 * CELLS_PER_HOUR,
    ),
    "an hour": Query(
        statement=hour_queries.ONE_HOUR, arguments="'2026-01-10Z'", rows_max=CELLS_PER_HOUR
    ),
    "some hours": Query(
        statement=hour_queries.SOME_HOURS,
        arguments="ARRAY[timestamptz '2026-01-10Z', '2026-01-11Z']",
        rows_max=2 * CELLS_PER_HOUR,
    ),
    "cells of a user": Query(
        statement=hour_queries.CELLS_OF_USER, arguments="'2026-01-10Z', '7'", rows_max=1
    ),
    "hours that became final": Query(
        statement=change_feed.CHANGED,
        arguments="gen_random_uuid(), 1, '2026-01-10Z', '2026-01-10T02:00Z', 1001",
        rows_max=3 * CELLS_PER_HOUR,
    ),
}

WITH_OPTIONAL_CONDITIONS = """
    SELECT order_id
    FROM order_summaries
    WHERE ($1::uuid IS NULL OR user_id = $1)
      AND ($2::uuid IS NULL OR order_id > $2)
    ORDER BY order_id
    LIMIT $3
"""
OPTIONAL = Query(
    statement=WITH_OPTIONAL_CONDITIONS, arguments=f"id(7), id({MIDDLE}), {PAGE}", rows_max=PAGE
)

Found = Mapping[str, list[Scan]]
"""What each query has read, by its name."""


@pytest.fixture(scope="module")
def found(postgres_dsn: str) -> Iterator[Mapping[str, Found]]:
    """What is read, by when the plans were made."""
    with new_database(postgres_dsn) as dsn:
        yield asyncio.run(measure(dsn))


async def measure(dsn: str) -> Mapping[str, Found]:
    await postgres.migrate(dsn, *PACKAGES)
    owner = await asyncpg.connect(dsn)
    try:
        await owner.execute(CREATE_IDS)
        for [table] in await owner.fetch(TABLES):
            await owner.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        async with (
            postgres.open_pool(dsn, name="test", connections_max=3) as pool,
            pool.acquire() as early,
            pool.acquire() as late,
            pool.acquire() as last,
        ):
            planned = await plan(early)
            await owner.execute(FILL)
            when_empty = await read(early, planned)
            when_filled = await read(late, await plan(late))
            await owner.execute("ANALYZE")
            return {
                "while empty": when_empty,
                "without statistics": when_filled,
                "with statistics": await read(last, await plan(last)),
            }
    finally:
        await owner.close()


async def plan(connection: postgres.Connection) -> Mapping[str, str]:
    """Prepare all statements and run each once: their plans are kept."""
    planned = {}
    for what, query in {**QUERIES, "optional": OPTIONAL}.items():
        planned[what] = name = await prepare(connection, query.statement)
        await run(connection, name, query)
    return planned


async def read(connection: postgres.Connection, planned: Mapping[str, str]) -> Found:
    everything = {**QUERIES, "optional": OPTIONAL}
    return {what: await run(connection, name, everything[what]) for what, name in planned.items()}


async def run(connection: postgres.Connection, name: str, query: Query) -> list[Scan]:
    transaction = connection.transaction()
    await transaction.start()
    try:
        return await explain(connection, name, query.arguments)
    finally:
        await transaction.rollback()


@pytest.mark.parametrize("what", QUERIES)
@pytest.mark.parametrize("when", ["while empty", "without statistics", "with statistics"])
def test_a_plan_without_values_reads_only_what_is_needed(
    found: Mapping[str, Found], what: str, when: str
) -> None:
    scans = found[when][what]

    assert count_rows(scans) <= QUERIES[what].rows_max, scans


@pytest.mark.parametrize("when", ["while empty", "without statistics", "with statistics"])
def test_an_optional_condition_in_a_statement_would_read_everything(
    found: Mapping[str, Found], when: str
) -> None:
    """The negative control."""
    assert count_rows(found[when]["optional"]) > ROWS / 2
