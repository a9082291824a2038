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
from shared.outbox.outbox import Snapshot
from shared.runtime import postgres
from shared.runtime.progress import ProgressLine

LOCK_SECONDS_MAX = 5
"""How long a writer may be at work before the replay begins."""

CONNECTION_SETTINGS = {
    "application_name": "replay",
    "timezone": "UTC",
    "lock_timeout": f"{LOCK_SECONDS_MAX}s",
}

# Writers wait, so the events of this moment are complete.
LOCK = "LOCK TABLE streams IN SHARE ROW EXCLUSIVE MODE"

SNAPSHOT = "SELECT pg_current_snapshot()::text"

# All that is in the outbox counts as published: the replay holds it once more.
TAKE = """
    UPDATE relay
    SET owner = NULL,
        epoch = epoch + 1,
        lease_until = '-infinity',
        published_xmax = $1::text::xid8,
        published_xip = $2::text[]::xid8[],
        target = NULL,
        floor_position = 0,
        system_identifier = (SELECT system_identifier FROM pg_control_system())
    WHERE lease_until < clock_timestamp()
"""

COLUMNS = ("topic", "partition", "key", "value", "headers", "recorded_at")


class RelayIsActive(Exception):
    """A relay is publishing, or was until a moment ago: stop it first, and start it afterwards."""


async def replay(connection: asyncpg.Connection, history: History, progress: ProgressLine) -> int:
    """Put all public events into the outbox once more, in one transaction; return their number.

    The next relay publishes them. `history` is on the same connection.

    Raises:
        RelayIsActive: nothing was changed.
        asyncpg.LockNotAvailableError: a writer was at work for LOCK_SECONDS_MAX; nothing was
            changed.
    """
    records = 0
    async with connection.transaction():
        await connection.execute(LOCK)
        # Before this transaction has an id of its own: its rows must not count as published.
        published = Snapshot.parse(await connection.fetchval(SNAPSHOT))
        taken = await connection.execute(TAKE, published.xmax, list(published.xip))
        if taken != "UPDATE 1":
            raise RelayIsActive(RelayIsActive.__doc__)
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
    text = "publish all events once more, after a topic was lost; the relay must not run"
    commands.add_parser("replay", help=text, description=text)


async def run(dsn: str, stores: Stores) -> None:
    """The command `replay`.

    Raises:
        SystemExit: one line, the reason why nothing was done.
    """
    connection = await asyncpg.connect(
        dsn, timeout=postgres.CONNECT_TIMEOUT_SECONDS, server_settings=CONNECTION_SETTINGS
    )
    progress = ProgressLine()
    try:
        records = await replay(connection, History(connection, stores), progress)
    except (RelayIsActive, asyncpg.LockNotAvailableError) as error:
        sys.exit(f"hometown: nothing is replayed: {error}")
    finally:
        progress.end()
        await connection.close()
    sys.stdout.write(f"{records} records wait for the relay, of {progress.events} events\n")
