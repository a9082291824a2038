"""Generations of the job's tables: the active one, and one that a rebuild fills."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg
from psycopg.rows import class_row

from analytics_spark.job.checkpoint import Checkpoint

TABLES = ("cells", "sales", "epochs", "batches")
"""The tables of each generation."""

LOCK_TIMEOUT_SECONDS = 10
"""How long a switch waits for readers of a view; after that it changes nothing."""

ALL = """
    SELECT number, checkpoint, is_active, built_at, shown_until
    FROM generations
    WHERE dropped_at IS NULL
    ORDER BY number
"""

IS_ACTIVE = """
    SELECT is_active
    FROM generations
    WHERE number = %s AND dropped_at IS NULL
"""

BEGIN = """
    INSERT INTO generations (number, checkpoint)
    SELECT max(number) + 1, 'generation-' || (max(number) + 1)
    FROM generations
    RETURNING number, checkpoint, is_active, built_at, shown_until
"""

MARK_BUILT = """
    UPDATE generations
    SET built_at = coalesce(built_at, clock_timestamp())
    WHERE number = %s
"""

HIDE = """
    UPDATE generations
    SET is_active = false, shown_until = clock_timestamp()
    WHERE is_active
"""

SHOW = """
    UPDATE generations
    SET is_active = true, shown_until = NULL
    WHERE number = %s
"""

DROP = """
    UPDATE generations
    SET dropped_at = clock_timestamp()
    WHERE number = %s
"""


class OtherGeneration(Exception):
    """A writer's tables were shown, hidden or dropped since it opened them (see the message)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Tables in a schema of their own, and the folder of the checkpoint that fills them."""

    number: int
    checkpoint: str
    is_active: bool
    built_at: datetime | None = None
    shown_until: datetime | None = None

    @property
    def schema(self) -> str:
        return f"generation_{self.number}"

    def get_checkpoint(self, folder: Path) -> Checkpoint:
        """`folder` is the setting CHECKPOINT_DIR, which all generations share."""
        return Checkpoint(folder / self.checkpoint)

    @property
    def was_shown(self) -> bool:
        return self.is_active or self.shown_until is not None


FIRST = Generation(number=1, checkpoint=".", is_active=True)
"""The generation of a new database."""


def find_all(connection: psycopg.Connection) -> Sequence[Generation]:
    with connection.cursor(row_factory=class_row(Generation)) as cursor:
        return cursor.execute(ALL).fetchall()


def get_active(connection: psycopg.Connection) -> Generation:
    """The generation that readers see."""
    [shown] = [each for each in find_all(connection) if each.is_active]
    return shown


def find_candidate(connection: psycopg.Connection) -> Generation | None:
    """The newest generation that was never shown: a rebuild, finished or not."""
    built = [each for each in find_all(connection) if not each.was_shown]
    return built[-1] if built else None


def find_previous(connection: psycopg.Connection) -> Generation | None:
    """The generation that was shown before the active one, unless it was dropped."""
    hidden = [(each.shown_until, each) for each in find_all(connection) if each.shown_until]
    return max(hidden, key=lambda pair: pair[0])[1] if hidden else None


def begin(connection: psycopg.Connection) -> Generation:
    """Create empty tables like those of the active generation. `connection` is the owner's."""
    active = get_active(connection)
    with (
        connection.transaction(),
        connection.cursor(row_factory=class_row(Generation)) as cursor,
    ):
        generation = cursor.execute(BEGIN).fetchone()
        assert generation is not None  # there is always one to count from
        cursor.execute(f"CREATE SCHEMA {generation.schema}".encode())
        for table in TABLES:
            cursor.execute(
                f"CREATE TABLE {generation.schema}.{table}"
                f" (LIKE {active.schema}.{table} INCLUDING ALL)".encode()
            )
    return generation


def mark_built(connection: psycopg.Connection, generation: Generation) -> None:
    connection.execute(MARK_BUILT, [generation.number])


def show(connection: psycopg.Connection, generation: Generation) -> None:
    """Let readers see this generation instead, atomically. `connection` is the owner's.

    Raises:
        psycopg.errors.LockNotAvailable: a reader held a view for too long; nothing is changed.
    """
    with connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_SECONDS}s'".encode())
        connection.execute(HIDE)
        connection.execute(SHOW, [generation.number])
        for table in TABLES:
            connection.execute(
                f"CREATE OR REPLACE VIEW public.{table}"  # noqa: S608
                f" AS SELECT * FROM {generation.schema}.{table}".encode()
            )


def drop(connection: psycopg.Connection, generation: Generation) -> None:
    """Drop the tables of a generation that is not active. `connection` is the owner's."""
    assert not generation.is_active
    with connection.transaction():
        connection.execute(DROP, [generation.number])
        connection.execute(f"DROP SCHEMA {generation.schema} CASCADE".encode())


def require_unchanged(cursor: psycopg.Cursor, generation: Generation) -> None:
    """Check that the generation is still as active as when its writer opened it.

    Nothing would be counted twice without this, because each generation has its own checkpoint.
    But a job would continue to write tables that have no readers.

    Raises:
        OtherGeneration: it was shown, hidden or dropped.
    """
    row = cursor.execute(IS_ACTIVE, [generation.number]).fetchone()
    if row is None:
        raise OtherGeneration(f"generation {generation.number} was dropped")
    if row[0] != generation.is_active:
        now = "is the active one now" if row[0] else "is not the active one any more"
        raise OtherGeneration(f"generation {generation.number} {now}")
