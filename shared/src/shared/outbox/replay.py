"""The topics of a service, published again from its event store, after they were lost.

Every public event goes into the outbox once more: the same record, in the same order within each
stream. A consumer that has read it before knows its version and drops it; any other reads each
stream from its beginning.

The rows keep the time of their event, which is the record's timestamp, so those of past hours lie
in the partition `outbox_rest`. A partition for each past hour would mean thousands of them, for
rows that are gone in minutes.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

import asyncpg

from shared.eventsourcing.history import History, PastEvent, Stores
from shared.messaging import wire
from shared.outbox.lease import RESTART
from shared.outbox.outbox import Snapshot
from shared.runtime import postgres
from shared.runtime.progress import ProgressLine

# Writers wait, so the events of this moment are complete.
LOCK = "LOCK TABLE streams IN SHARE ROW EXCLUSIVE MODE"

SNAPSHOT = "SELECT pg_current_snapshot()::text"

# The replay holds once more all that is there, and the transaction ids of what a restore brought
# from another cluster mean nothing.
EMPTY = "TRUNCATE outbox"

# What the broker has acknowledged before, and may have lost, is put into the outbox once more.
TAKE = f"""{RESTART}, acknowledged = '{{}}', records_lost = NULL
    WHERE lease_until < clock_timestamp()"""

COLUMNS = ("topic", "partition", "key", "value", "headers", "recorded_at")


class RelayIsActive(Exception):
    """A relay is publishing, or was until a moment ago: stop it first, and start it afterwards."""


async def replay(
    connection: asyncpg.Connection,
    history: History,
    progress: ProgressLine,
    forget_offsets: str | None = None,
) -> int:
    """Put all public events into the outbox once more, in one transaction; return their number.

    The next relay publishes them. `history` is on the same connection. `forget_offsets` is the
    statement that removes what the service knows of records that are lost.

    Raises:
        RelayIsActive: nothing was changed.
        asyncpg.LockNotAvailableError: a writer was at work for too long; nothing was changed.
    """
    records = 0
    async with connection.transaction():
        await connection.execute(LOCK)
        # Before this transaction has an id of its own: its rows must not count as published.
        published = Snapshot.parse(await connection.fetchval(SNAPSHOT))
        taken = await connection.execute(TAKE, published.xmax, list(published.xip))
        if taken != "UPDATE 1":
            raise RelayIsActive(RelayIsActive.__doc__)
        await connection.execute(EMPTY)
        if forget_offsets is not None:
            await connection.execute(forget_offsets)
        async for page in history.read_pages():
            rows = list(outbox_rows(page))
            await connection.copy_records_to_table("outbox", records=rows, columns=COLUMNS)
            records += len(rows)
            progress.add(len(page))
    return records


def outbox_rows(page: Sequence[PastEvent]) -> Iterator[tuple[object, ...]]:
    """COLUMNS of the events that left the service."""
    for event in page:
        if event.record is not None:
            record = event.record
            yield (
                record.topic,
                record.partition,
                record.key,
                record.value,
                wire.pack(record.headers),
                event.recorded.recorded_at,
            )


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `replay`, for `run`."""
    text = "publish all events once more, after a topic was lost"
    parser = commands.add_parser("replay", help=text, description=text)
    parser.add_argument(
        "--topics-lost",
        action="store_true",
        help="the service's topics are empty: forget where the events were in them",
    )


async def run(dsn: str, stores: Stores, forget_offsets: str | None = None) -> None:
    """The command `replay`.

    Raises:
        SystemExit: one line, the reason why nothing was done.
    """
    progress = ProgressLine()
    async with postgres.connect_to_repair(dsn, "replay") as connection:
        history = History(connection, stores)
        try:
            records = await replay(connection, history, progress, forget_offsets)
        except (RelayIsActive, asyncpg.LockNotAvailableError) as error:
            sys.exit(f"hometown: nothing is replayed: {error}")
        finally:
            progress.end()
    sys.stdout.write(f"{records} records wait for the relay, of {progress.events} events\n")
