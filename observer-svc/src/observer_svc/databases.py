"""What the databases of the services show to the observer."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import asyncpg
from aiokafka import TopicPartition

from observer_svc.report import ConsumerProgress
from shared.inbox import parked
from shared.inbox.parked import ParkedCount
from shared.outbox import backlog
from shared.outbox.backlog import Backlog

CONNECT_SECONDS_MAX = 3.0
READ_SECONDS_MAX = 6.0
"""Of all queries together."""

# The views of consumers that are no consumer groups.
POSITIONS = "SELECT consumer, topic, partition, position FROM consumer_positions"
PROGRESS = """
    SELECT consumer,
           extract(epoch FROM clock_timestamp() - beat_at)::float8 AS beat_seconds,
           extract(epoch FROM clock_timestamp() - committed_at)::float8 AS commit_seconds,
           extract(epoch FROM clock_timestamp() - event_at)::float8 AS event_seconds,
           extract(epoch FROM event_at - watermark)::float8 AS watermark_seconds
    FROM consumer_progress
"""

CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """What was read of one database. `backlog` is None in one without an event store.

    `clock_skew_seconds` is its clock minus that of this process, to within half of the time that
    the query took.
    """

    backlog: Backlog | None = None
    parked: Mapping[str, ParkedCount] = field(default_factory=dict)
    positions: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)
    progress: Sequence[ConsumerProgress] = ()
    clock_skew_seconds: float = 0.0


async def read(dsn: str, *, has_event_store: bool, has_offsets: bool) -> Database:
    """Read a database, on a connection of its own: a server can restart between two reads.

    Args:
        has_event_store: whether there are an outbox and parked streams.
        has_offsets: whether there are offsets of consumers.

    Raises:
        UNAVAILABLE, PostgresError: it cannot be read now, or does not have all of this yet.
    """
    connection = await asyncpg.connect(
        dsn,
        timeout=CONNECT_SECONDS_MAX,
        server_settings={"application_name": "observer", "timezone": "UTC"},
    )
    try:
        async with asyncio.timeout(READ_SECONDS_MAX):
            return Database(
                backlog=await backlog.read(connection) if has_event_store else None,
                parked=await parked.count_streams(connection) if has_event_store else {},
                positions=await read_positions(connection) if has_offsets else {},
                progress=await read_progress(connection) if has_offsets else (),
                clock_skew_seconds=await measure_clock_skew(connection),
            )
    finally:
        connection.terminate()


async def read_positions(
    connection: asyncpg.Connection,
) -> Mapping[str, Mapping[TopicPartition, int]]:
    """Read the offset of the next record in each partition, by consumer."""
    positions: defaultdict[str, dict[TopicPartition, int]] = defaultdict(dict)
    for consumer, topic, partition, position in await connection.fetch(POSITIONS):
        positions[consumer][TopicPartition(topic, partition)] = position
    return positions


async def read_progress(connection: asyncpg.Connection) -> Sequence[ConsumerProgress]:
    """Read how far each consumer has come that was ever there."""
    return [ConsumerProgress(**row) for row in await connection.fetch(PROGRESS)]


async def measure_clock_skew(connection: asyncpg.Connection) -> float:
    """Compare the clock of the server with that of this process."""
    asked_at = time.time()
    clock: float = await connection.fetchval(CLOCK)
    return clock - (asked_at + time.time()) / 2
