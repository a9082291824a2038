"""The right to write a generation's tables: one connection, with a lock, for one checkpoint."""

import logging
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import TypeVar

import psycopg

from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.generations import FIRST, Generation
from analytics_spark.job.job_lock import WRITER_LOCK

log = logging.getLogger(__name__)

T = TypeVar("T")

CONNECT_TIMEOUT_SECONDS = 10
RECONNECT_SECONDS_MAX = 60
"""How long a writer tries to get a connection again. After that its query ends."""

RECONNECT_POLL_SECONDS = 0.25
CLOSE_SECONDS_MAX = 1
"""Between the last word of a server that ends and the end of the connection."""
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
        DamagedCheckpoint: whose checkpoint it is cannot be read.
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
        checkpoint.drop_torn()
        refuse_other_checkpoint(connection, checkpoint)
        refuse_other_state(connection, checkpoint)
        refuse_other_buckets(connection, buckets)
        connection.execute(CREATE_DELTAS)
        yield connection


class LastingWriter:
    """A writer that opens its connection again when it is lost.

    Everything that `open_writer` checks is checked each time. Work runs again on a new connection
    without knowing whether it was committed on the old one, so it must be safe to repeat; a batch
    is, by its epoch row.
    """

    def __init__(self, opening: Callable[[], AbstractContextManager[psycopg.Connection]]) -> None:
        """Raises what `open_writer` raises."""
        self._opening = opening
        self._opened = ExitStack()
        self._connection = self._opened.enter_context(opening())
        self._in_use = threading.Lock()
        self._lost_at: float | None = None
        self._is_closing = threading.Event()

    @property
    def is_connected(self) -> bool:
        """Whether the connection is there, as far as is known."""
        return self._lost_at is None

    def run(self, work: Callable[[psycopg.Connection], T]) -> T:
        """The result of the work on a connection that lasted.

        Raises:
            NotTheWriter: another job writes these tables by now, or they are other tables.
            psycopg.Error: the work failed, or the connection was lost for RECONNECT_SECONDS_MAX.
        """
        with self._in_use:
            while True:
                try:
                    return work(self._connection)
                except psycopg.OperationalError:
                    if not is_lost(self._connection, CLOSE_SECONDS_MAX):
                        raise
                while not self._reopen():
                    self._is_closing.wait(RECONNECT_POLL_SECONDS)

    def renew_if_lost(self) -> None:
        """Try once to open a connection that the server has closed, unless work uses it.

        Raises:
            NotTheWriter, psycopg.Error: as `run`.
        """
        if self._in_use.acquire(blocking=False):
            try:
                if is_lost(self._connection):
                    self._reopen()
            finally:
                self._in_use.release()

    def close(self) -> None:
        """The lock goes with the connection."""
        self._is_closing.set()
        self._opened.close()

    def _reopen(self) -> bool:
        """Whether the connection is open again. Raises the last error when the time is over."""
        if self._lost_at is None:
            self._lost_at = time.monotonic()
            log.warning("the connection to the database is lost")
        self._opened.close()
        try:
            self._connection = self._opened.enter_context(self._opening())
        except psycopg.OperationalError:
            lost_seconds = time.monotonic() - self._lost_at
            if lost_seconds > RECONNECT_SECONDS_MAX or self._is_closing.is_set():
                raise
            return False
        self._lost_at = None
        log.warning("connected to the database again")
        return True


@contextmanager
def open_lasting_writer(
    dsn: str, checkpoint: Checkpoint, buckets: int, generation: Generation = FIRST
) -> Iterator[LastingWriter]:
    """As `open_writer`, for as long as a query runs."""
    writer = LastingWriter(partial(open_writer, dsn, checkpoint, buckets, generation))
    try:
        yield writer
    finally:
        writer.close()


def is_lost(connection: psycopg.Connection, wait_seconds: float = 0) -> bool:
    """Whether the server has closed a connection on which no work is in progress.

    A connection at rest has nothing to read, unless it is closed or a setting has changed.
    """
    if not connection.closed and select.select([connection], [], [], wait_seconds)[0]:
        try:
            connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return True
    return connection.closed


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
            f" {batch_name(done)} and planned {batch_name(planned)}: after a power cut, or a"
            " restore of PostgreSQL, run `make republish`, or restore the tables and the"
            " checkpoint of one moment"
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
