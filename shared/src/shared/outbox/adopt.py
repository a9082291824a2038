"""The outbox after a dump was restored into another cluster.

Transaction ids mean nothing there: those of the dump may lie ahead of every snapshot, or behind the
checkpoint. What was not published yet gets the id of the transaction that runs here, what was
published is removed, and the checkpoint begins before that transaction.
"""

import argparse
import sys

import asyncpg

from shared.outbox import outbox
from shared.outbox.lease import RESTART
from shared.outbox.outbox import Snapshot
from shared.runtime import postgres

SNAPSHOT = "SELECT pg_current_snapshot()::text"

LOCK = "LOCK TABLE outbox, relay IN ACCESS EXCLUSIVE MODE"

IS_OF_THIS_CLUSTER = """
    SELECT coalesce(
        system_identifier = (SELECT system_identifier FROM pg_control_system())
        AND published_xmax <= pg_snapshot_xmax(pg_current_snapshot()), false)
    FROM relay
"""

# What was written here since the restore is younger than the row `relay`, which came with the dump
# and is changed by no relay of this cluster; it is not published, whatever its id.
REMOVE_PUBLISHED = """
    DELETE FROM outbox
    USING relay
    WHERE system_identifier <> (SELECT system_identifier FROM pg_control_system())
      AND age(outbox.xmin) >= age(relay.xmin)
      AND ((transaction_id < published_xmax AND transaction_id <> ALL (published_xip))
           OR (position <= floor_position AND pg_visible_in_snapshot(transaction_id, target)))
"""

STAMP = "UPDATE outbox SET transaction_id = pg_current_xact_id()"


class NotRestored(Exception):
    """The outbox is of this cluster: there is nothing to adopt."""


async def adopt(connection: asyncpg.Connection) -> int:
    """Make the restored outbox this cluster's, in one transaction; return how many rows wait.

    Raises:
        NotRestored: nothing was changed.
        asyncpg.LockNotAvailableError: a writer was at work for too long; nothing was changed.
    """
    async with connection.transaction():
        # Before this transaction has an id of its own: its rows must not count as published.
        before = Snapshot.parse(await connection.fetchval(SNAPSHOT))
        await connection.execute(LOCK)
        is_ours = await connection.fetchval(IS_OF_THIS_CLUSTER)
        if is_ours and not await outbox.is_ahead(connection):
            raise NotRestored(NotRestored.__doc__)
        await connection.execute(REMOVE_PUBLISHED)
        status: str = await connection.execute(STAMP)
        await connection.execute(RESTART, before.xmax, list(before.xip))
    return int(status.rpartition(" ")[2])


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `adopt-outbox`, for `run`."""
    text = "continue with the outbox of a dump that was restored into another cluster"
    commands.add_parser("adopt-outbox", help=text, description=text)


async def run(dsn: str) -> None:
    """The command `adopt-outbox`, as the owner of the tables.

    Raises:
        SystemExit: one line, the reason why nothing was done.
    """
    async with postgres.connect_to_repair(dsn, "adopt-outbox") as connection:
        try:
            waiting = await adopt(connection)
        except (NotRestored, asyncpg.LockNotAvailableError) as error:
            sys.exit(f"hometown: nothing was adopted: {error}")
    sys.stdout.write(f"{waiting} records wait for the relay\n")
