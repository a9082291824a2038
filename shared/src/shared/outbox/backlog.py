"""What waits in the outbox and whether a relay publishes it, as seen from outside of all relays."""

from dataclasses import dataclass

from shared.runtime.postgres import Connection

ROWS_MAX = 10_000
"""Rows that are counted: so many stand for more."""

# Each branch is ordered so that it is a range of the index, as in `outbox.POLL`. While a window is
# open, what waits begins at its floor: a few rows there were published before it.
BACKLOG = """
    WITH pending AS (
        SELECT new.recorded_at
        FROM relay, LATERAL (
            (SELECT recorded_at
             FROM outbox
             WHERE relay.target IS NULL
               AND transaction_id >= relay.published_xmax
             ORDER BY transaction_id, position
             LIMIT $1)
            UNION ALL
            (SELECT recorded_at
             FROM outbox
             WHERE relay.target IS NULL
               AND transaction_id = ANY (relay.published_xip)
               AND transaction_id < relay.published_xmax
             ORDER BY transaction_id, position
             LIMIT $1)
            UNION ALL
            (SELECT recorded_at
             FROM outbox
             WHERE relay.target IS NOT NULL
               AND position > relay.floor_position
             ORDER BY position
             LIMIT $1)
        ) AS new
    )
    SELECT (SELECT count(*) FROM pending) AS rows,
           (SELECT extract(epoch FROM clock_timestamp() - min(recorded_at))::float8 FROM pending)
               AS seconds,
           lease_until > clock_timestamp() AS is_held,
           extract(epoch FROM clock_timestamp() - beat_at)::float8 AS beat_seconds
    FROM relay
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What a relay has to publish. `seconds` is how long the oldest row has waited, and
    `beat_seconds` how long ago the loop of a relay came round; None: never."""

    rows: int
    seconds: float
    is_held: bool
    beat_seconds: float | None


async def read(connection: Connection) -> Backlog:
    """Read the state of the outbox. The role has to read `relay` and `outbox`, and nothing else."""
    row = await connection.fetchrow(BACKLOG, ROWS_MAX)
    assert row is not None  # one row
    seconds = row["seconds"] or 0.0
    return Backlog(
        rows=min(row["rows"], ROWS_MAX),
        seconds=max(0.0, seconds),  # a writer's clock can be ahead
        is_held=row["is_held"],
        beat_seconds=row["beat_seconds"],
    )
