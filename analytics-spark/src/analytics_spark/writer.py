"""The right to write the tables: one connection, with a lock, for one checkpoint."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from analytics_spark import checkpoint

CONNECT_TIMEOUT_SECONDS = 10
STATEMENT_TIMEOUT_SECONDS = 60
LOCK_WAIT_SECONDS = 30
LOCK_POLL_SECONDS = 0.5
WRITER_LOCK = 0x63656C6C
"""Key of the advisory lock that lets one job write these tables."""

OWNERS = "SELECT query_id FROM epochs"

TRY_LOCK = "SELECT pg_try_advisory_lock(%s)"

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
    """This job must not write these tables; the message says why."""


@contextmanager
def open_writer(dsn: str, checkpoint_dir: Path) -> Iterator[psycopg.Connection]:
    """The connection of the only writer of these tables; the lock goes with the connection.

    The epoch row alone would keep a second job on the same checkpoint from counting twice; the lock
    also stops one with a checkpoint of its own.

    Raises:
        NotTheWriter: another job held the lock for LOCK_WAIT_SECONDS, or the tables were filled
            from another checkpoint.
    """
    with psycopg.connect(
        dsn,
        autocommit=True,
        application_name="analytics-job",
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        options=f"-c timezone=UTC -c statement_timeout={STATEMENT_TIMEOUT_SECONDS}s",
    ) as connection:
        take_lock(connection)
        refuse_other_checkpoint(connection, checkpoint_dir)
        connection.execute(CREATE_DELTAS)
        yield connection


def take_lock(connection: psycopg.Connection) -> None:
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while connection.execute(TRY_LOCK, [WRITER_LOCK]).fetchone() != (True,):
        if time.monotonic() > deadline:
            raise NotTheWriter("another job writes the cells of this database")
        time.sleep(LOCK_POLL_SECONDS)


def refuse_other_checkpoint(connection: psycopg.Connection, checkpoint_dir: Path) -> None:
    """A new checkpoint reads the topics from their beginning: all orders would count again."""
    owner = checkpoint.query_id(checkpoint_dir)
    others = [str(row[0]) for row in connection.execute(OWNERS) if str(row[0]) != owner]
    if others:
        raise NotTheWriter(
            f"the cells belong to query {others[0]}, but {checkpoint_dir} holds {owner or 'none'}"
        )
