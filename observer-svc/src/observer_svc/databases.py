"""What the databases of the services show to the observer: rows of views."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import asyncpg

from observer_svc.delivery import Count

CONSUMER_POSITIONS = "consumer_positions"
DELIVERY_COUNTS = "delivery_counts"
CONNECT_SECONDS_MAX = 5.0
QUERY_SECONDS_MAX = 10.0

# Those that the observer can read. A database of the release before has none yet.
VIEWS = r"""
    SELECT relname::text AS name
    FROM pg_class
    WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace
      AND (relname LIKE '%\_observations' OR relname IN ('consumer_positions', 'delivery_counts'))
      AND has_table_privilege(oid, 'SELECT')
    ORDER BY relname
"""
OBSERVATIONS = """
    SELECT name, unit, description, attributes::text AS attributes, value FROM {view}
"""
POSITIONS = "SELECT consumer, topic, partition, position FROM consumer_positions"
COUNTS = "SELECT stage, name, versions FROM delivery_counts"
CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A value of a gauge."""

    name: str
    unit: str
    description: str
    attributes: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Place:
    """A consumer and a partition that it reads."""

    consumer: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """What was read of one database. `clock_skew_seconds` is its clock minus that of this process,
    to within half of the time that the query took."""

    observations: Sequence[Observation] = ()
    positions: Mapping[Place, int] = field(default_factory=dict)
    clock_skew_seconds: float = 0.0
    counts: Sequence[Count] = ()


async def read(dsn: str, *, with_counts: bool = False) -> Database:
    """Read all views, on a connection of its own: a server can restart between two reads. The
    counts take a pass over all streams.

    Raises:
        UNAVAILABLE, PostgresError: it cannot be read now.
    """
    connection = await asyncpg.connect(
        dsn,
        timeout=CONNECT_SECONDS_MAX,
        command_timeout=QUERY_SECONDS_MAX,
        server_settings={"application_name": "observer", "timezone": "UTC"},
    )
    try:
        views = [row["name"] for row in await connection.fetch(VIEWS)]
        return Database(
            observations=[
                each
                for view in views
                if view not in (CONSUMER_POSITIONS, DELIVERY_COUNTS)
                for each in await read_observations(connection, view)
            ],
            positions=await read_positions(connection) if CONSUMER_POSITIONS in views else {},
            clock_skew_seconds=await measure_clock_skew(connection),
            counts=await read_counts(connection)
            if with_counts and DELIVERY_COUNTS in views
            else (),
        )
    finally:
        connection.terminate()


async def read_observations(connection: asyncpg.Connection, view: str) -> list[Observation]:
    return [
        Observation(
            name=row["name"],
            unit=row["unit"],
            description=row["description"],
            attributes=json.loads(row["attributes"]),
            value=row["value"],
        )
        for row in await connection.fetch(OBSERVATIONS.format(view=view))
    ]


async def read_positions(connection: asyncpg.Connection) -> Mapping[Place, int]:
    return {
        Place(row["consumer"], row["topic"], row["partition"]): row["position"]
        for row in await connection.fetch(POSITIONS)
    }


async def read_counts(connection: asyncpg.Connection) -> list[Count]:
    return [Count(*row.values()) for row in await connection.fetch(COUNTS)]


async def measure_clock_skew(connection: asyncpg.Connection) -> float:
    asked_at = time.time()
    clock: float = await connection.fetchval(CLOCK)
    return clock - (asked_at + time.time()) / 2
