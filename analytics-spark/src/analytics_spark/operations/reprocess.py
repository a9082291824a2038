"""`reprocess`: all cells made anew from the topics, compared with the live ones, and then shown.

The rebuild is the live query with a checkpoint of its own, into tables of its own: a generation.
The live job goes on meanwhile. A rebuild that was interrupted goes on where it was, and one that is
finished takes what came since. After a switch the live job ends with one line; its next start goes
on from the checkpoint where the rebuild ended, so that nothing is lost nor counted twice, and a
roll back does the same with the other checkpoint.
"""

import argparse
import asyncio
import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import psycopg
import pyarrow as pa
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark.job import generations, job, writer
from analytics_spark.job.generations import Generation
from analytics_spark.operations import generations_compared
from analytics_spark.settings import JobSettings
from shared.runtime import rights
from shared.runtime.progress import tell_in_place

RECORDS_PER_TRIGGER_MIN = 400_000
"""Orders. Nobody waits for a batch of a rebuild, and a large one costs less a record."""

PASSES = 2
"""The second one takes what came during the first: the less is left, the less a switch takes back
until the job has caught up."""

SILENCE_SECONDS_MAX = 300
"""How long a batch may take."""
POLL_SECONDS = 0.25

STATEMENT_TIMEOUT_SECONDS = 600
"""A comparison reads all cells of both."""

REPROCESS_LOCK = 0x72657072
"""Key of the advisory lock that lets one of these work at a time."""

TRY_LOCK = "SELECT pg_try_advisory_lock(%s)"


class NothingDone(Exception):
    """Why the tables that people read are as they were."""


def run(settings: JobSettings, arguments: argparse.Namespace, stop: threading.Event) -> None:
    """The command `reprocess`, as the owner of the database.

    Raises:
        NothingDone, job.FAILURES: one line says why.
    """
    with opened(settings) as connection:
        if arguments.roll_back:
            roll_back(connection)
        elif arguments.drop:
            drop_hidden(connection, settings.checkpoint_dir)
        else:
            generation = wanted(connection, settings, anew=arguments.anew)
            fill(settings, generation, stop)
            generations.mark_built(connection, generation)
            compare(connection, generation)
            if arguments.switch:
                switch(connection, generation)
            else:
                tell("nothing is switched yet: `make reprocess args=--switch` does it")


@contextmanager
def opened(settings: JobSettings) -> Iterator[psycopg.Connection]:
    """The owner's connection, with the right to change generations.

    Raises:
        NothingDone: somebody else has it.
    """
    with psycopg.connect(
        settings.database_dsn,
        autocommit=True,
        application_name="reprocess",
        connect_timeout=writer.CONNECT_TIMEOUT_SECONDS,
        options=f"-c timezone=UTC -c statement_timeout={STATEMENT_TIMEOUT_SECONDS}s",
    ) as connection:
        if connection.execute(TRY_LOCK, [REPROCESS_LOCK]).fetchone() != (True,):
            raise NothingDone("another reprocess is at work: wait until it has ended")
        yield connection


def wanted(connection: psycopg.Connection, settings: JobSettings, *, anew: bool) -> Generation:
    """The rebuild that is there and was never shown, or a new one."""
    generation = generations.candidate(connection)
    if generation is not None and anew:
        remove(connection, settings.checkpoint_dir, generation)
        generation = None
    if generation is None:
        generation = generations.begin(connection)
        asyncio.run(grant(settings))
        tell(f"generation {generation.number} begins with the topics' first records")
    else:
        tell(f"generation {generation.number} goes on where it was")
    return generation


async def grant(settings: JobSettings) -> None:
    """The job runs under another role than the owner's, and will write the new tables."""
    if settings.database_service_role is None:
        return
    connection = await asyncpg.connect(settings.database_dsn)
    try:
        declared = rights.load_rights(["analytics_spark"])
        await rights.grant(connection, settings.database_service_role, declared.service)
    finally:
        await connection.close()


def fill(settings: JobSettings, generation: Generation, stop: threading.Event) -> None:
    """Read all that is in the topics.

    Raises:
        NothingDone: it was stopped, or does not get on.
    """
    records = max(settings.records_per_trigger_max, RECORDS_PER_TRIGGER_MIN)
    large = settings.model_copy(update={"records_per_trigger_max": records})
    began_at = time.monotonic()
    with job.filling(large, generation, leave) as start:
        for _ in range(PASSES):
            with job.started(start(to_the_end=True)) as live:
                follow(live, stop)
    tell(f"built in {time.monotonic() - began_at:.0f} s")


def leave(bad: pa.Table) -> None:
    """Bad records lie in the dead letter topics since the live job read them."""


def follow(live: StreamingQuery, stop: threading.Event) -> None:
    """Tell a terminal how far the query is, until it has ended. Raises what ended it."""
    batch, heard_at = None, time.monotonic()
    while live.isActive:
        if stop.wait(POLL_SECONDS):
            raise NothingDone("stopped; the same command goes on where it was")
        progress = live.lastProgress
        if progress is not None and progress.batchId != batch:
            batch, heard_at = progress.batchId, time.monotonic()
            show(progress)
        if time.monotonic() - heard_at > SILENCE_SECONDS_MAX:
            raise NothingDone(f"no batch within {SILENCE_SECONDS_MAX} s; try again")
    tell_in_place("")
    if error := live.exception():
        raise error


def show(progress: StreamingQueryProgress) -> None:
    done = sum(records_in(source.endOffset) for source in progress.sources)
    ends = sum(records_in(source.latestOffset) for source in progress.sources)
    per_second = progress.processedRowsPerSecond or 0
    tell_in_place(f"{done:,} of {ends:,} records, {per_second:,.0f}/s")


def records_in(offset: str | None) -> int:
    """The sum of a source's offsets, as Spark tells them."""
    topics = json.loads(offset) if offset and offset != "null" else {}
    return sum(end for partitions in topics.values() for end in partitions.values())


def compare(connection: psycopg.Connection, generation: Generation) -> None:
    shown = generations.active(connection)
    for line in generations_compared.report(connection, shown, generation):
        tell(line)


def switch(connection: psycopg.Connection, generation: Generation) -> None:
    """Raises NothingDone: readers of the tables did not end."""
    before = generations.active(connection)
    try:
        generations.show(connection, generation)
    except psycopg.errors.LockNotAvailable as error:
        raise NothingDone(f"the tables are being read, try again: {error}") from error
    tell(
        f"generation {generation.number} is shown instead of {before.number}; the job starts again"
        " and goes on with it. `make reprocess args=--roll-back` goes back, `args=--drop` removes"
        f" generation {before.number}"
    )


def roll_back(connection: psycopg.Connection) -> None:
    generation = generations.previous(connection)
    if generation is None:
        raise NothingDone("there is no generation that was shown before")
    switch(connection, generation)


def drop_hidden(connection: psycopg.Connection, checkpoint_dir: Path) -> None:
    for generation in generations.find_all(connection):
        if not generation.is_active:
            remove(connection, checkpoint_dir, generation)


def remove(connection: psycopg.Connection, checkpoint_dir: Path, generation: Generation) -> None:
    """Its tables, and then its checkpoint. The first one's holds the folders of the others."""
    generations.drop(connection, generation)
    own = generation.get_checkpoint(checkpoint_dir).path
    for entry in own.iterdir() if own.exists() else ():
        if entry.name.startswith("generation-"):
            continue
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    if own.exists() and own.resolve() != checkpoint_dir.resolve():
        own.rmdir()
    tell(f"generation {generation.number} is removed")


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
