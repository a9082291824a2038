"""`reprocess`: rebuilds all cells from the topics, compares them with the live ones, shows them.

The rebuild is the live query with its own checkpoint and its own tables: a generation. The live job
runs meanwhile. A rebuild that was interrupted resumes where it was, and a finished one reads what
has arrived since. After a switch the live job ends with one line; its next start continues from the
checkpoint where the rebuild ended, so that nothing is lost or counted twice. A roll back does the
same with the other checkpoint.
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
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark.job import generations, job, writer
from analytics_spark.job.generations import Generation
from analytics_spark.operations import generations_compared
from analytics_spark.settings import JobSettings
from shared.runtime import rights
from shared.runtime.progress import tell_in_place

RECORDS_PER_TRIGGER_MIN = 400_000
"""Orders. Latency does not matter in a rebuild, and a large batch costs less per record."""

PASSES = 2
"""The second one reads what arrived during the first: the less is left, the sooner the job has
caught up after a switch."""

SILENCE_SECONDS_MAX = 300
"""How long a batch may take."""
POLL_SECONDS = 0.25

STATEMENT_TIMEOUT_SECONDS = 600
"""A comparison reads all cells of both generations."""

REPROCESS_LOCK = 0x72657072
"""Key of the advisory lock that allows one reprocess at a time."""

TRY_LOCK = "SELECT pg_try_advisory_lock(%s)"


class NothingDone(Exception):
    """The active tables are unchanged; the message has the reason."""


def run(settings: JobSettings, arguments: argparse.Namespace, stop: threading.Event) -> None:
    """The command `reprocess`, as the owner of the database.

    Raises:
        NothingDone, job.FAILURES: the message has the reason in one line.
    """
    with connect(settings) as connection:
        if arguments.roll_back:
            roll_back(connection)
        elif arguments.drop:
            drop_hidden(connection, settings.checkpoint_dir)
        else:
            generation = find_or_begin(connection, settings, from_scratch=arguments.from_scratch)
            fill(settings, generation, stop)
            generations.mark_built(connection, generation)
            compare(connection, generation)
            if arguments.switch:
                switch(connection, generation)
            else:
                print_line(
                    "the active cells are unchanged; use `make reprocess args=--switch` to switch"
                )


@contextmanager
def connect(settings: JobSettings) -> Iterator[psycopg.Connection]:
    """The owner's connection, with the lock for changing generations.

    Raises:
        NothingDone: another reprocess holds the lock.
    """
    with psycopg.connect(
        settings.database_dsn,
        autocommit=True,
        application_name="reprocess",
        connect_timeout=writer.CONNECT_TIMEOUT_SECONDS,
        options=f"-c timezone=UTC -c statement_timeout={STATEMENT_TIMEOUT_SECONDS}s",
    ) as connection:
        if connection.execute(TRY_LOCK, [REPROCESS_LOCK]).fetchone() != (True,):
            raise NothingDone("another reprocess is running: wait until it ends")
        yield connection


def find_or_begin(
    connection: psycopg.Connection, settings: JobSettings, *, from_scratch: bool
) -> Generation:
    """The newest rebuild that was never shown, or a new one."""
    generation = generations.find_candidate(connection)
    if generation is not None and from_scratch:
        remove(connection, settings.checkpoint_dir, generation)
        generation = None
    if generation is None:
        generation = generations.begin(connection)
        asyncio.run(grant(settings))
        print_line(f"generation {generation.number} starts at the first records of the topics")
    else:
        print_line(f"generation {generation.number} resumes where it was")
    return generation


async def grant(settings: JobSettings) -> None:
    """Grant the new tables to the job, which runs with another role than the owner's."""
    if settings.database_service_role is None:
        return
    connection = await asyncpg.connect(settings.database_dsn)
    try:
        declared = rights.load_rights(["analytics_spark"])
        await rights.grant(connection, settings.database_service_role, declared.service)
    finally:
        await connection.close()


def fill(settings: JobSettings, generation: Generation, stop: threading.Event) -> None:
    """Read all records of the topics.

    Raises:
        NothingDone: it was stopped, or makes no progress.
    """
    records = max(settings.records_per_trigger_max, RECORDS_PER_TRIGGER_MIN)
    large = settings.model_copy(update={"records_per_trigger_max": records})
    began_at = time.monotonic()
    with job.open_query(large, generation, is_repeated=True) as (start, _):
        for _ in range(PASSES):
            with job.stop_at_end(start(available_now=True)) as live:
                follow(live, stop)
    print_line(f"built in {time.monotonic() - began_at:.0f} s")


def follow(live: StreamingQuery, stop: threading.Event) -> None:
    """Show the progress on a terminal until the query has ended. Raises the query's error."""
    batch, progressed_at = None, time.monotonic()
    while live.isActive:
        if stop.wait(POLL_SECONDS):
            raise NothingDone("stopped; the same command resumes where it was")
        progress = live.lastProgress
        if progress is not None and progress.batchId != batch:
            batch, progressed_at = progress.batchId, time.monotonic()
            show(progress)
        if time.monotonic() - progressed_at > SILENCE_SECONDS_MAX:
            raise NothingDone(f"no batch within {SILENCE_SECONDS_MAX} s; retry")
    tell_in_place("")
    if error := live.exception():
        raise error


def show(progress: StreamingQueryProgress) -> None:
    done = sum(count_records(source.endOffset) for source in progress.sources)
    ends = sum(count_records(source.latestOffset) for source in progress.sources)
    per_second = progress.processedRowsPerSecond or 0
    tell_in_place(f"{done:,} of {ends:,} records, {per_second:,.0f}/s")


def count_records(offset: str | None) -> int:
    """The sum of the offsets in Spark's JSON of a source."""
    topics = json.loads(offset) if offset and offset != "null" else {}
    return sum(end for partitions in topics.values() for end in partitions.values())


def compare(connection: psycopg.Connection, generation: Generation) -> None:
    shown = generations.get_active(connection)
    for line in generations_compared.report(connection, shown, generation):
        print_line(line)


def switch(connection: psycopg.Connection, generation: Generation) -> None:
    """Show a generation. Raises NothingDone when readers hold the tables for too long."""
    before = generations.get_active(connection)
    try:
        generations.show(connection, generation)
    except psycopg.errors.LockNotAvailable as error:
        raise NothingDone(f"the tables are being read; retry: {error}") from error
    print_line(
        f"generation {generation.number} is shown instead of {before.number}; the job restarts and"
        " continues with it. `make reprocess args=--roll-back` shows the previous one again,"
        f" `args=--drop` removes generation {before.number}"
    )


def roll_back(connection: psycopg.Connection) -> None:
    generation = generations.find_previous(connection)
    if generation is None:
        raise NothingDone("there is no previous generation")
    switch(connection, generation)


def drop_hidden(connection: psycopg.Connection, checkpoint_dir: Path) -> None:
    for generation in generations.find_all(connection):
        if not generation.is_active:
            remove(connection, checkpoint_dir, generation)


def remove(connection: psycopg.Connection, checkpoint_dir: Path, generation: Generation) -> None:
    """Drop the tables, and then the checkpoint. That of the first generation has the folders of the
    others."""
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
    print_line(f"generation {generation.number} is removed")


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
