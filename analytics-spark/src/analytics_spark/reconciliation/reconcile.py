"""Do the final hours agree with the event stores? A check that shares nothing with the job.

It uses neither the topics nor any code of the job: the events of users-svc and orders-svc are
copied into temporary tables next to the cells, and joined there in SQL, as of each order's time.

What the job could not know in time is no difference. orders-svc stores the offset of each order's
event when it sees it in the topic (`publications`); the job stores which batch read which offsets,
and its watermark (`batches`): an order at or before that watermark was too late and not counted,
and a cancellation of such an order was ignored. A move or another origin that was recorded after
the order's confirmation counts if that was before the watermark passed the order; one from before
the confirmation was in the topics before it. Where the two cannot be distinguished (a batch that
was deleted, a move within SLACK_SECONDS of that moment), a purchase is undecided: the cell may have
it or not, and differs only outside of this range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import psycopg
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Literal

CONNECT_TIMEOUT_SECONDS = 10
STATEMENT_TIMEOUT_SECONDS = 600

SLACK_SECONDS = 300
"""How long a move can take from its recording into a batch: relay, topic, job."""

DIFFERENCES_MAX = 1_000
"""Differing cells that are returned one by one."""

KNOWN_VERSION = 1
"""The schema version of all event types that the statements below can read."""

NOT_UNDERSTOOD = """
    SELECT DISTINCT type, schema_version
    FROM events
    WHERE type = ANY(%s) AND schema_version <> %s
    LIMIT 1
"""

ORDERS_TYPES = ["order-confirmed", "order-cancelled", "item-listed", "item-origin-corrected"]
USERS_TYPES = ["user-registered", "user-moved", "user-deleted"]

# The job rounds times down to milliseconds; so do all three statements.
COPY_PURCHASES = SQL("""
    COPY (
        SELECT confirmed.stream_id, confirmed.data->>'user_id', line->>'item_id',
            (line->>'quantity')::bigint,
            ((line->>'quantity')::bigint * (line->>'unit_price')::numeric * 100)::bigint,
            date_trunc('milliseconds', (confirmed.data->>'ordered_at')::timestamptz),
            confirmed.recorded_at, counted.partition, counted.record_offset,
            cancelled.stream_id IS NOT NULL, uncounted.partition, uncounted.record_offset
        FROM events AS confirmed
        CROSS JOIN json_array_elements(confirmed.data->'lines') AS line
        LEFT JOIN publications AS counted
            ON (counted.stream_id, counted.version) = (confirmed.stream_id, confirmed.version)
        LEFT JOIN events AS cancelled
            ON cancelled.stream_id = confirmed.stream_id AND cancelled.type = 'order-cancelled'
        LEFT JOIN publications AS uncounted
            ON (uncounted.stream_id, uncounted.version) = (cancelled.stream_id, cancelled.version)
        WHERE confirmed.type = 'order-confirmed'
          AND (confirmed.data->>'ordered_at')::timestamptz >= {since}
          AND (confirmed.data->>'ordered_at')::timestamptz < {until}
    ) TO STDOUT
""")

COPY_USERS = SQL("""
    COPY (
        SELECT stream_id, date_trunc('milliseconds', (data->>'effective_at')::timestamptz), version,
            recorded_at, data->>'address', data->>'gender'
        FROM events
        WHERE type IN ('user-registered', 'user-moved', 'user-deleted')
    ) TO STDOUT
""")

COPY_ITEMS = SQL("""
    COPY (
        SELECT stream_id, date_trunc('milliseconds', (data->>'effective_at')::timestamptz), version,
            recorded_at, data->>'origin', data->>'type'
        FROM events
        WHERE type IN ('item-listed', 'item-origin-corrected')
    ) TO STDOUT
""")

CREATE_COPIES = """
    CREATE TEMPORARY TABLE purchases (
        order_id text,
        user_id text,
        item_id text,
        quantity bigint,
        cents bigint,
        ordered_at timestamptz,
        recorded_at timestamptz,
        partition integer,
        record_offset bigint,
        is_cancelled boolean,
        cancelled_partition integer,
        cancelled_offset bigint
    ) ON COMMIT DROP;
    CREATE TEMPORARY TABLE users (
        user_id text,
        valid_from timestamptz,
        version integer,
        recorded_at timestamptz,
        address text,
        gender text
    ) ON COMMIT DROP;
    CREATE TEMPORARY TABLE items (
        item_id text,
        valid_from timestamptz,
        version integer,
        recorded_at timestamptz,
        origin text,
        type text
    ) ON COMMIT DROP;
"""

# first and behind: the range of offsets of a partition that a batch has read, end not included.
CREATE_READINGS = """
    CREATE TEMPORARY TABLE readings ON COMMIT DROP AS
    SELECT partition.key::integer AS partition, (partition.value->>0)::bigint AS first,
        (partition.value->>1)::bigint AS behind, watermark
    FROM batches, jsonb_each(offsets->'orders.v1') AS partition;
    CREATE INDEX ON readings (partition, behind, first);
    CREATE TEMPORARY TABLE chances ON COMMIT DROP AS
    SELECT coalesce(watermark, '-infinity') AS watermark, max(committed_at) AS committed_at
    FROM batches
    GROUP BY 1;
    CREATE INDEX ON chances (watermark);
    CREATE INDEX ON users (user_id, valid_from, version);
    CREATE INDEX ON items (item_id, valid_from, version);
    ANALYZE readings, chances, users, items, purchases;
"""

STATE = """
    SELECT max(watermark) AS watermark,
        (SELECT built_at FROM generations WHERE is_active) AS built_at
    FROM epochs
"""

# For a record of orders.v1: whether it was read before the watermark passed the order. Null when
# that is unknown: its offset was not stored, or its batch was deleted.
IN_TIME = """
    SELECT CASE
        WHEN {offset} IS NULL THEN NULL
        WHEN reading.behind IS NULL THEN false -- not read yet: it will be late
        WHEN reading.first > {offset} THEN NULL
        ELSE reading.watermark IS NULL OR purchases.ordered_at > reading.watermark
    END AS in_time
    FROM (SELECT) AS one
    LEFT JOIN LATERAL (
        SELECT first, behind, watermark
        FROM readings
        WHERE readings.partition = {partition} AND behind > {offset}
        ORDER BY behind, first
        LIMIT 1
    ) AS reading ON true
"""

# The last batch that could still correct the order. Facts recorded later did not; facts recorded
# well before it did. A rebuild reads the past within moments, so nothing is known about it.
LAST_CHANCE = """
    SELECT CASE
        WHEN %(built_at)s::timestamptz IS NULL OR committed_at > %(built_at)s THEN committed_at
    END AS committed_at
    FROM chances
    WHERE watermark < purchases.ordered_at
    ORDER BY watermark DESC
    LIMIT 1
"""

AS_OF = """
    SELECT {columns}
    FROM {table}
    WHERE {table}.{key} = judged.{key} AND valid_from <= judged.ordered_at
      AND recorded_at <= judged.{cut}
    ORDER BY valid_from DESC, version DESC
    LIMIT 1
"""


def as_of(table: str, key: str, columns: str, cut: str) -> str:
    return AS_OF.format(table=table, key=key, columns=columns, cut=cut)


# What is not local has neither user nor item, and what is unknown is empty.
CELL_OF = """
    CASE
        WHEN {user}.address = {item}.origin THEN ARRAY[
            judged.user_id, judged.item_id, coalesce({item}.type, ''), {user}.address,
            coalesce({user}.gender, '')
        ]
        ELSE ARRAY[
            '', '', coalesce({item}.type, ''), coalesce({user}.address, ''),
            coalesce({user}.gender, '')
        ]
    END
"""


def cell_of(user: str, item: str) -> str:
    """The cell that counts a purchase: user, item, type, address, gender."""
    return CELL_OF.format(user=user, item=item)


# Each purchase is joined twice: with what was certainly known in time, and with what may have been.
COMPARE = f"""
    CREATE TEMPORARY TABLE compared ON COMMIT DROP AS
    WITH judged AS (
        SELECT purchases.*, date_trunc('hour', ordered_at) AS hour,
            counted.in_time AND (NOT is_cancelled OR NOT uncounted.in_time) AS is_counted,
            greatest(
                chance.committed_at - make_interval(secs => %(slack)s), purchases.recorded_at
            ) AS surely_before,
            coalesce(chance.committed_at, 'infinity') AS perhaps_before
        FROM purchases
        CROSS JOIN LATERAL (
            {IN_TIME.format(partition="purchases.partition", offset="purchases.record_offset")}
        ) AS counted
        CROSS JOIN LATERAL (
            {
    IN_TIME.format(partition="purchases.cancelled_partition", offset="purchases.cancelled_offset")
}
        ) AS uncounted
        LEFT JOIN LATERAL ({LAST_CHANCE}) AS chance ON true
    ), joined AS (
        SELECT judged.hour, judged.quantity, judged.cents, is_counted,
            {cell_of("su", "si")} AS sure_cell,
            {cell_of("pu", "pi")} AS cell
        FROM judged
        LEFT JOIN LATERAL ({as_of("users", "user_id", "address, gender", "surely_before")})
            AS su ON true
        LEFT JOIN LATERAL ({as_of("items", "item_id", "origin, type", "surely_before")})
            AS si ON true
        LEFT JOIN LATERAL ({as_of("users", "user_id", "address, gender", "perhaps_before")})
            AS pu ON true
        LEFT JOIN LATERAL ({as_of("items", "item_id", "origin, type", "perhaps_before")})
            AS pi ON true
        WHERE is_counted IS DISTINCT FROM false
    ), candidates AS (
        SELECT hour, cell, quantity, cents,
            coalesce(is_counted, false) AND sure_cell = cell AS is_sure
        FROM joined
        UNION ALL
        SELECT hour, sure_cell, quantity, cents, false
        FROM joined
        WHERE sure_cell <> cell
    ), expected AS (
        SELECT hour, cell[1] AS user_id, cell[2] AS item_id, cell[3] AS item_type,
            cell[4] AS address, cell[5] AS gender,
            count(*) FILTER (WHERE is_sure) AS purchases_min, count(*) AS purchases_max,
            coalesce(sum(quantity) FILTER (WHERE is_sure), 0) AS quantity_min,
            sum(quantity) AS quantity_max,
            coalesce(sum(cents) FILTER (WHERE is_sure), 0) AS cents_min, sum(cents) AS cents_max
        FROM candidates
        GROUP BY hour, cell
    )
    SELECT hour, user_id, item_id, item_type, address, gender,
        coalesce(found.purchases, 0) AS purchases, coalesce(found.quantity, 0) AS quantity,
        coalesce(found.cents, 0) AS cents,
        coalesce(purchases_min, 0) AS purchases_min, coalesce(purchases_max, 0) AS purchases_max,
        coalesce(quantity_min, 0) AS quantity_min, coalesce(quantity_max, 0) AS quantity_max,
        coalesce(cents_min, 0) AS cents_min, coalesce(cents_max, 0) AS cents_max
    FROM expected
    FULL JOIN (
        SELECT hour, user_id, item_id, item_type, address, gender, purchases, quantity, cents
        FROM cells
        WHERE hour >= %(since)s AND hour < %(until)s
    ) AS found USING (hour, user_id, item_id, item_type, address, gender)
"""  # noqa: S608

COUNTS = """
    SELECT coalesce(sum(purchases_max), 0)::bigint AS purchases,
        coalesce(sum(purchases_max - purchases_min), 0)::bigint AS undecided
    FROM compared
"""

DIFFERENT = """
    SELECT hour, user_id, item_id, address, purchases, quantity::bigint, cents::bigint,
        purchases_min AS purchases_right, quantity_min::bigint AS quantity_right,
        cents_min::bigint AS cents_right
    FROM compared
    WHERE NOT (
        purchases BETWEEN purchases_min AND purchases_max
        AND quantity BETWEEN quantity_min AND quantity_max
        AND cents BETWEEN cents_min AND cents_max
    )
    ORDER BY hour, user_id, item_id
    LIMIT %s
"""


class NotComparable(Exception):
    """Nothing was compared; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A cell with its stored values, and the right ones according to the event stores."""

    hour: datetime
    user_id: str
    item_id: str
    address: str
    purchases: int
    quantity: int
    cents: int
    purchases_right: int
    quantity_right: int
    cents_right: int

    def __str__(self) -> str:
        what = f"user {self.user_id}, item {self.item_id}" if self.user_id else "not local"
        return f"{self.hour:%Y-%m-%dT%H} {what}, {self.address}: {self.amounts}"

    @property
    def amounts(self) -> str:
        """What differs, without personal data."""
        return (
            f"{amounts(self.purchases, self.quantity, self.cents)}, expected"
            f" {amounts(self.purchases_right, self.quantity_right, self.cents_right)}"
        )


def amounts(purchases: int, quantity: int, cents: int) -> str:
    return f"purchases {purchases}, quantity {quantity}, amount {Decimal(cents).scaleb(-2)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The final hours in [since, until), their purchases, and which cells differ."""

    since: datetime | None
    until: datetime | None
    purchases: int = 0
    undecided: int = 0
    differences: Sequence[Difference] = ()


def compare(
    analytics_dsn: str, users_dsn: str, orders_dsn: str, *, hours_max: int
) -> Reconciliation:
    """Compare the last final hours, at most `hours_max` of them.

    The cells are read first: everything that the job had counted by then is already in the event
    stores.

    Raises:
        NotComparable: an event has an unknown schema version.
        psycopg.Error: a database is unavailable.
    """
    with (
        connect(analytics_dsn) as analytics,
        connect(users_dsn) as users,
        connect(orders_dsn) as orders,
    ):
        analytics.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        row = analytics.execute(STATE).fetchone()
        assert row is not None  # an aggregate without GROUP BY always has a row
        watermark, built_at = row
        if watermark is None:
            return Reconciliation(since=None, until=None)
        until = watermark.replace(minute=0, second=0, microsecond=0)
        since = until - timedelta(hours=hours_max)
        require_known_versions(users, USERS_TYPES)
        require_known_versions(orders, ORDERS_TYPES)
        analytics.execute(CREATE_COPIES)
        bounds = {"since": Literal(since), "until": Literal(until)}
        copy(orders, COPY_PURCHASES.format(**bounds), analytics, "purchases")
        copy(orders, COPY_ITEMS, analytics, "items")
        copy(users, COPY_USERS, analytics, "users")
        analytics.execute(CREATE_READINGS)
        values = {"since": since, "until": until, "built_at": built_at, "slack": SLACK_SECONDS}
        analytics.execute(COMPARE.encode(), values)
        return read_result(analytics, since, until)


def connect(dsn: str) -> psycopg.Connection:
    return psycopg.connect(
        dsn,
        application_name="reconcile",
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        options=f"-c timezone=UTC -c statement_timeout={STATEMENT_TIMEOUT_SECONDS}s",
    )


def require_known_versions(connection: psycopg.Connection, types: list[str]) -> None:
    other = connection.execute(NOT_UNDERSTOOD, [types, KNOWN_VERSION]).fetchone()
    if other is not None:
        raise NotComparable(f"{other[0]} has the unknown schema version {other[1]}")


def copy(
    source: psycopg.Connection, statement: SQL | Composed, target: psycopg.Connection, table: str
) -> None:
    """Stream rows from one database into a table of another."""
    with (
        source.cursor().copy(statement) as rows,
        target.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copied,
    ):
        for part in rows:
            copied.write(part)


def read_result(analytics: psycopg.Connection, since: datetime, until: datetime) -> Reconciliation:
    counts = analytics.execute(COUNTS).fetchone()
    assert counts is not None  # an aggregate without GROUP BY always has a row
    with analytics.cursor(row_factory=class_row(Difference)) as cursor:
        differences = cursor.execute(DIFFERENT, [DIFFERENCES_MAX]).fetchall()
    return Reconciliation(
        since=since,
        until=until,
        purchases=counts[0],
        undecided=counts[1],
        differences=differences,
    )
