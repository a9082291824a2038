"""The right to write a generation's tables: one connection, with a lock, for one checkpoint."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.generations import FIRST, Generation
from analytics_spark.job.job_lock import WRITER_LOCK

CONNECT_TIMEOUT_SECONDS = 10
STATEMENT_TIMEOUT_SECONDS = 60
LOCK_WAIT_SECONDS = 30
LOCK_POLL_SECONDS = 0.5

# The generation's own tables come before the views on the active one.
SEARCH_PATH = "SELECT set_config('search_path', %s || ', public', false)"

OWNERS = "SELECT query_id FROM epochs"

NEWEST_BATCH = "SELECT coalesce(max(batch_id), -1) FROM epochs"

BUCKETS = "SELECT buckets FROM epochs"

TRY_LOCK = "SELECT pg_try_advisory_lock(%s, %s)"

CREATE_DELTAS = """
    CREATE TEMPORARY TABLE deltas (
        hour timestamptz,
        item_id text,
        item_type text,
        address text,
        gender text,
        user_id text,
        purchases bigint,
        quantity bigint,
        cents bigint
    ) ON COMMIT DELETE ROWS
"""


class NotTheWriter(Exception):
    """This job must not write these tables; the message has the reason."""


@contextmanager
def open_writer(
    dsn: str, checkpoint: Checkpoint, buckets: int, generation: Generation = FIRST
) -> Iterator[psycopg.Connection]:
    """The connection of the only writer of a generation; the lock goes with the connection.

    `checkpoint` is the generation's own.

    The epoch row alone prevents a second job on the same checkpoint from counting twice; the lock
    also stops one with its own checkpoint.

    Raises:
        NotTheWriter: another job held the lock for LOCK_WAIT_SECONDS, or the tables were filled
            from another checkpoint, from another state of this one, or with other buckets.
    """
    with psycopg.connect(
        dsn,
        autocommit=True,
        application_name="analytics-job",
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        options=f"-c timezone=UTC -c statement_timeout={STATEMENT_TIMEOUT_SECONDS}s",
    ) as connection:
        connection.execute(SEARCH_PATH, [generation.schema])
        take_lock(connection, generation)
        refuse_other_checkpoint(connection, checkpoint)
        refuse_other_state(connection, checkpoint)
        refuse_other_buckets(connection, buckets)
        connection.execute(CREATE_DELTAS)
        yield connection


def take_lock(connection: psycopg.Connection, generation: Generation) -> None:
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while not try_lock(connection, generation):
        if time.monotonic() > deadline:
            raise NotTheWriter(f"another job writes generation {generation.number} of the cells")
        time.sleep(LOCK_POLL_SECONDS)


def try_lock(connection: psycopg.Connection, generation: Generation) -> bool:
    """Whether the connection has the right to write now, and keeps it."""
    keys = [WRITER_LOCK, generation.number]
    return connection.execute(TRY_LOCK, keys).fetchone() == (True,)


def refuse_other_checkpoint(connection: psycopg.Connection, checkpoint: Checkpoint) -> None:
    """A new checkpoint reads the topics from their beginning: all orders would count again."""
    owner = checkpoint.query_id
    others = [str(row[0]) for row in connection.execute(OWNERS) if str(row[0]) != owner]
    if others:
        raise NotTheWriter(
            f"the cells belong to query {others[0]}, but {checkpoint.path} has {owner or 'none'}"
        )


def refuse_other_state(connection: psycopg.Connection, checkpoint: Checkpoint) -> None:
    """Tables or a checkpoint that were lost, or restored from a backup, do not match the other.

    Tables that are behind lack batches which Spark does not run again. Tables that are ahead reject
    the next batches as applied, whatever they have. PostgreSQL commits a batch after Spark has
    planned it and before Spark notes it as done, so everything between the two is right.
    """
    row = connection.execute(NEWEST_BATCH).fetchone()
    assert row is not None  # an aggregate without GROUP BY always has a row
    done = checkpoint.newest_sunk
    planned = checkpoint.newest_planned
    if not done <= row[0] <= planned:
        raise NotTheWriter(
            f"the cells are of {batch_name(row[0])}, but {checkpoint.path} has done"
            f" {batch_name(done)} and planned {batch_name(planned)}: restore the tables and the"
            " checkpoint of one moment, or empty both to count from the beginning"
        )


def batch_name(batch_id: int) -> str:
    return "no batch" if batch_id < 0 else f"batch {batch_id}"


def refuse_other_buckets(connection: psycopg.Connection, buckets: int) -> None:
    """With another number, users would go to buckets without their state."""
    row = connection.execute(BUCKETS).fetchone()
    if row is not None and row[0] != buckets:
        raise NotTheWriter(
            f"the checkpoint permanently has {row[0]} buckets, but BUCKETS is {buckets}: set it to"
            f" {row[0]}, or empty the tables and the checkpoint to count from the beginning"
        )


def refuse_other_partitions(checkpoint: Checkpoint, partitions: int | None) -> None:
    """Spark would silently use the number that the checkpoint has.

    Raises:
        NotTheWriter: `partitions` is set and the state has another number, or a rescale was
            interrupted.
    """
    done = checkpoint.newest_done
    planned = checkpoint.newest_planned
    found = checkpoint.get_partitions(planned)
    if planned > done and checkpoint.is_rescale(planned):
        raise NotTheWriter(
            f"a rescale to {found} partitions was interrupted: repeat `make rescale"
            f" partitions={found}`"
        )
    if partitions is not None and found is not None and found != partitions:
        raise NotTheWriter(
            f"the checkpoint has {found} shuffle partitions, but SHUFFLE_PARTITIONS is"
            f" {partitions}: unset it, or `make rescale partitions={partitions}`"
        )
