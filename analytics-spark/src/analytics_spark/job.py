"""The process around the streaming query: one writer, health, and an end that is in order."""

import asyncio
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark import dead_letters, query, sink, writer
from analytics_spark.readiness import Readiness
from analytics_spark.session import open_session
from analytics_spark.settings import JobSettings
from shared.health import health_server

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25
STOP_WAIT_SECONDS = 10
"""How long a stop waits for the batch in hand. One that is cut off runs again after a start."""

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
        except (writer.NotTheWriter, psycopg.Error, StreamingQueryException) as error:
            log.critical("the job ends: %s", cause_of(error))
            sys.exit(1)


def run_query(settings: JobSettings, stop: threading.Event, readiness: Readiness) -> None:
    """Raises what ended the query, when that was not `stop`."""
    dsn, checkpoint_dir = settings.database_dsn, settings.checkpoint_dir
    with writer.open_writer(dsn, checkpoint_dir, settings.buckets) as connection:
        spark = open_session(settings)
        try:
            frame = query.outcomes(spark, settings)
            set_aside = partial(dead_letters.set_aside, settings.kafka_bootstrap_servers)
            write = sink.sink_into(connection, checkpoint_dir, settings.buckets, set_aside)
            with started(query.start(frame, write, settings)) as running:
                watch(running, stop, readiness)
        finally:
            spark.stop()


@contextmanager
def started(running: StreamingQuery) -> Iterator[StreamingQuery]:
    """Stop the query in the end, if possible between two batches: a cut one only makes noise."""
    try:
        yield running
    finally:
        deadline = time.monotonic() + STOP_WAIT_SECONDS
        while running.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        running.stop()


def watch(running: StreamingQuery, stop: threading.Event, readiness: Readiness) -> None:
    while not stop.wait(POLL_SECONDS):
        if not running.isActive:
            raise running.exception() or RuntimeError("the query ended by itself")
        readiness.look_at(running)


def cause_of(error: Exception) -> str:
    """One line for the log. Spark's message holds a stack for every layer the error went through;
    what began it is at the end of the last one."""
    lines = ERROR_OF_PYTHON.findall(str(error)) or str(error).splitlines()[:1]
    return str(lines[-1]) if lines else repr(error)
