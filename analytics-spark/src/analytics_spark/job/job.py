"""The process around the streaming query: one writer, health, and an end that is in order."""

import asyncio
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark.job import dead_letters, generations, query, sink, writer
from analytics_spark.job.generations import Generation, OtherGeneration
from analytics_spark.job.readiness import Readiness
from analytics_spark.job.session import open_session
from analytics_spark.settings import JobSettings
from shared.web.health import health_server

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25
STOP_WAIT_SECONDS = 10
"""How long a stop waits for the batch in hand. One that is cut off runs again after a start."""

GENERATION_POLL_SECONDS = 5
"""How soon a job that has nothing to write notices that another generation is shown."""

FAILURES = (writer.NotTheWriter, OtherGeneration, psycopg.Error, StreamingQueryException)
"""What ends a job with one line."""

ERROR_OF_PYTHON = re.compile(r"^(?:(?:[a-z_]\w*\.)+\w+|\w*Error): .+$", re.MULTILINE)
"""The line that a stack of Python ends with: a class and its message."""


async def run_job(settings: JobSettings) -> None:
    """Run the query until SIGTERM; a failure ends the process with one line, for a new start.

    The event loop stays free for health requests: all that waits for Spark is in a thread.
    """
    # It logs every batch, and a failure with the stack of a call that is not ours.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    readiness = Readiness(settings.trigger_milliseconds)
    checks = {"query": readiness.check}
    async with health_server(settings.http_host, settings.http_port, checks):
        try:
            await asyncio.to_thread(run_query, settings, stop, readiness)
        except FAILURES as error:
            log.critical("the job ends: %s", cause_of(error))
            sys.exit(1)


def run_query(settings: JobSettings, stop: threading.Event, readiness: Readiness) -> None:
    """Write into the active generation. Raises what ended the query, when that was not `stop`."""
    generation = active_generation(settings.database_dsn)
    with filling(settings, generation) as start, started(start()) as live:
        watch(live, stop, readiness, lambda: demand_active(settings.database_dsn, generation))


def active_generation(dsn: str) -> Generation:
    with psycopg.connect(dsn, connect_timeout=writer.CONNECT_TIMEOUT_SECONDS) as connection:
        return generations.active(connection)


@contextmanager
def filling(
    settings: JobSettings,
    generation: Generation,
    write_dead_letter: Callable[[pa.Table], None] | None = None,
) -> Iterator[Callable[..., StreamingQuery]]:
    """All that the query needs which fills a generation; starts it, with the options of
    `query.start`. Bad records go to the dead letter topics, if `write_dead_letter` is not given."""
    checkpoint = generation.get_checkpoint(settings.checkpoint_dir)
    own = settings.model_copy(update={"checkpoint_dir": checkpoint.path})
    dsn, buckets = settings.database_dsn, settings.buckets
    with writer.open_writer(dsn, checkpoint, buckets, generation) as connection:
        writer.refuse_other_partitions(checkpoint, settings.shuffle_partitions)
        spark = open_session(own)
        try:
            query.begin_first_batch(spark, own)
            frame = query.outcomes(spark, own)
            copy = partial(dead_letters.write_dead_letter, settings.brokers)
            write_dead_letter = write_dead_letter or copy
            write = sink.sink_into(connection, checkpoint, buckets, write_dead_letter, generation)
            yield partial(query.start, frame, write, own)
        finally:
            spark.stop()


@contextmanager
def started(live: StreamingQuery) -> Iterator[StreamingQuery]:
    """Stop the query in the end, if possible between two batches: a cut one only makes noise."""
    try:
        yield live
    finally:
        deadline = time.monotonic() + STOP_WAIT_SECONDS
        while live.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        live.stop()


def watch(
    live: StreamingQuery,
    stop: threading.Event,
    readiness: Readiness,
    look: Callable[[], None] = lambda: None,
) -> None:
    """Until `stop`; what the query or `look` raises ends it sooner."""
    looked_at = time.monotonic()
    while not stop.wait(POLL_SECONDS):
        if not live.isActive:
            raise live.exception() or RuntimeError("the query ended by itself")
        readiness.look_at(live)
        if time.monotonic() - looked_at > GENERATION_POLL_SECONDS:
            look()
            looked_at = time.monotonic()


def demand_active(dsn: str, generation: Generation) -> None:
    """Each batch looks for itself; this is for a job that has none.

    Raises:
        OtherGeneration: another one is shown.
    """
    try:
        with (
            psycopg.connect(dsn, connect_timeout=writer.CONNECT_TIMEOUT_SECONDS) as connection,
            connection.cursor() as cursor,
        ):
            generations.demand_unchanged(cursor, generation)
    except psycopg.Error as error:
        log.warning("PostgreSQL does not say which generation is shown: %s", cause_of(error))


def cause_of(error: Exception) -> str:
    """One line for the log. Spark's message holds a stack for every layer the error went through;
    what began it is at the end of the last one."""
    lines = ERROR_OF_PYTHON.findall(str(error)) or str(error).splitlines()[:1]
    return str(lines[-1]) if lines else repr(error)
