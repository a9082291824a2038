"""The process around the streaming query: one writer, health, and an orderly stop."""

import asyncio
import builtins
import logging
import math
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark.job import dead_letters, generations, query, sink, writer
from analytics_spark.job.checkpoint import Checkpoint, DamagedCheckpoint
from analytics_spark.job.generations import Generation, OtherGeneration
from analytics_spark.job.readiness import Readiness
from analytics_spark.job.resting import rest_after
from analytics_spark.job.session import open_session
from analytics_spark.job.writer import LastingWriter
from analytics_spark.settings import JobSettings
from shared.messaging.log_ends import RecordsLost, require_records
from shared.runtime.brokers import Brokers
from shared.runtime.logs import because
from shared.web.health import health_server

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25
STOP_WAIT_SECONDS = 10
"""How long a stop waits for the current batch. An interrupted one runs again after a start."""

BEAT_SECONDS = 5
"""How often a job without new batches checks that its generation is active, and stores that it
runs."""

BEAT = """
    INSERT INTO beats (consumer, beat_at)
    VALUES ('analytics-job', clock_timestamp())
    ON CONFLICT (consumer) DO UPDATE SET beat_at = excluded.beat_at
"""

FAILURES = (
    writer.NotTheWriter,
    DamagedCheckpoint,
    OtherGeneration,
    RecordsLost,
    KafkaError,
    psycopg.Error,
    StreamingQueryException,
)
"""Errors that end a job with one line in the log."""

ERROR_OF_PYTHON = re.compile(
    r"^(?:(?:(?:[a-z_]\w*\.)+\w+|\w*Error): .+|(?:[a-z_]\w*\.)*\w*(?:Error|Exception))$",
    re.MULTILINE,
)
"""The last line of a Python traceback: a class and its message, if it has one."""


async def run_job(settings: JobSettings) -> None:
    """Run the query until SIGTERM; a failure ends the process with one line, to be restarted.

    The event loop stays free for health requests: everything that waits for Spark runs in a thread.
    """
    # py4j logs every batch, and a failure with a stack trace of its own callback.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    pause_seconds_max = settings.trigger_milliseconds / 1000 + settings.row_age_seconds_max
    readiness = Readiness(pause_seconds_max)
    checks = {"query": readiness.check}
    async with health_server(settings.http_host, settings.http_port, checks):
        try:
            await asyncio.to_thread(run_query, settings, stop, readiness)
        except FAILURES as error:
            log.critical("the job ends: %s", name_cause(error))
            sys.exit(1)


def run_query(settings: JobSettings, stop: threading.Event, readiness: Readiness) -> None:
    """Write into the active generation until `stop`. Raises the error that ended the query."""
    generation = get_active_generation(settings.database_dsn)
    checkpoint = generation.get_checkpoint(settings.checkpoint_dir)
    with (
        open_query(settings, generation, rests_until=stop) as (start, opened),
        hint_at_damage(checkpoint),
        stop_at_end(start(), stop) as live,
    ):
        readiness.set_writer(opened)
        dsn = settings.database_dsn
        watch(live, opened, stop, readiness, lambda: beat(dsn, generation, readiness))


@contextmanager
def hint_at_damage(checkpoint: Checkpoint) -> Iterator[None]:
    """Name the repair if the query fails before a batch is done.

    What a power cut has left of the state fails in as many ways as Spark has formats of files.

    Raises:
        DamagedCheckpoint: the query has failed like this.
    """
    done = checkpoint.newest_done
    try:
        yield
    except StreamingQueryException as error:
        if checkpoint.newest_done > done or done < 0:
            raise
        raise DamagedCheckpoint(
            f"{name_cause(error)} (no batch was done since the start; if each start ends like this,"
            f" {checkpoint.path} is damaged, as by a power cut: run `make republish`)"
        ) from error


def get_active_generation(dsn: str) -> Generation:
    with psycopg.connect(dsn, connect_timeout=writer.CONNECT_TIMEOUT_SECONDS) as connection:
        return generations.get_active(connection)


@contextmanager
def open_query(
    settings: JobSettings,
    generation: Generation,
    *,
    is_repeated: bool = False,
    rests_until: threading.Event | None = None,
) -> Iterator[tuple[Callable[..., StreamingQuery], LastingWriter]]:
    """Open the writer and the session of a generation; yields a function that starts the query,
    with the options of `query.start`, and the writer. Of what `is_repeated`, the job itself
    copies bad records to the dead letter topics, and extends the traces of orders. The query rests
    after its batches until the event `rests_until`; without one, it does not rest at all."""
    checkpoint = generation.get_checkpoint(settings.checkpoint_dir)
    dsn, buckets = settings.database_dsn, settings.buckets
    with writer.open_lasting_writer(dsn, checkpoint, buckets, generation) as opened:
        writer.refuse_other_partitions(checkpoint, settings.shuffle_partitions)
        refuse_lost_records(checkpoint, settings.brokers)
        own = fit(settings, checkpoint)
        spark = open_session(own)
        try:
            query.begin_first_batch(spark, own)
            frame = query.outcomes(spark, own)
            copy = partial(dead_letters.write_dead_letter, settings.brokers)
            write = sink.make_sink(
                opened, checkpoint, buckets, copy, generation, is_repeated=is_repeated
            )
            if rests_until is not None:
                write = rest_after(write, checkpoint, own, rests_until)
            yield partial(query.start, frame, write, own), opened
        finally:
            spark.stop()


def fit(settings: JobSettings, checkpoint: Checkpoint) -> JobSettings:
    """The settings with this checkpoint, and with as many partitions as its state has."""
    found = checkpoint.get_partitions(checkpoint.newest_planned)
    return settings.model_copy(
        update={
            "checkpoint_dir": checkpoint.path,
            "shuffle_partitions": found or settings.shuffle_partitions,
        }
    )


def refuse_lost_records(checkpoint: Checkpoint, brokers: Brokers) -> None:
    """Spark itself would fail again and again without naming the repair.

    Neither notices a loss once a log is long enough again: no relay extends it before a replay.

    Raises:
        RecordsLost: a log ends before what the newest batch reads.
        KafkaError: no broker answers.
    """
    planned = checkpoint.get_end_offsets(checkpoint.newest_planned)
    reached = {
        TopicPartition(topic, int(partition)): end
        for topic, partitions in planned.items()
        for partition, end in partitions.items()
    }
    asyncio.run(require_records(brokers, "analytics-job", reached))


@contextmanager
def stop_at_end(
    live: StreamingQuery, rests_until: threading.Event | None = None
) -> Iterator[StreamingQuery]:
    """Stop the query on exit, if possible between two batches: an interrupted one logs errors.

    A rest ends at once, also after a failure. With a backlog one batch follows the other at once:
    the one that runs ends, and the next one is interrupted at its beginning."""
    try:
        yield live
    finally:
        if rests_until is not None:
            rests_until.set()
        deadline = time.monotonic() + STOP_WAIT_SECONDS
        progress = read_progress(live)
        while (
            live.status["isTriggerActive"]
            and read_progress(live) == progress
            and time.monotonic() < deadline
        ):
            time.sleep(POLL_SECONDS)
        live.stop()


def read_progress(live: StreamingQuery) -> str | None:
    """When the last batch ended, or when there was nothing to read; it stays while a batch runs."""
    progress = live.lastProgress
    return None if progress is None else progress.timestamp


def watch(
    live: StreamingQuery,
    opened: LastingWriter,
    stop: threading.Event,
    readiness: Readiness,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Wait until `stop`. Raises the error of the query, of its writer, or of `check`, as soon as
    there is one."""
    checked_at = -math.inf
    while not stop.wait(POLL_SECONDS):
        if not live.isActive:
            raise live.exception() or RuntimeError("the query ended without an error")
        readiness.observe(live)
        opened.renew_if_lost()
        if time.monotonic() - checked_at > BEAT_SECONDS:
            check()
            checked_at = time.monotonic()


def beat(dsn: str, generation: Generation, readiness: Readiness) -> None:
    """Check that the generation is active, and store that the query runs: also without batches.

    Raises:
        OtherGeneration: another generation is active.
    """
    try:
        with (
            psycopg.connect(dsn, connect_timeout=writer.CONNECT_TIMEOUT_SECONDS) as connection,
            connection.cursor() as cursor,
        ):
            generations.require_unchanged(cursor, generation)
            if readiness.is_working:
                cursor.execute(BEAT)
    except psycopg.Error as error:
        log.warning(
            "cannot read the active generation, or store that the query runs", extra=because(error)
        )


def get_cause(error: Exception) -> str:
    """The root cause as one line. Spark's message has a stack trace for every layer that the error
    passed; the cause is at the end of the last one."""
    lines = ERROR_OF_PYTHON.findall(str(error)) or str(error).splitlines()[:1]
    return str(lines[-1]) if lines else repr(error)


def name_cause(error: Exception) -> str:
    """Name the root cause for the log: a bug's error, of Python or pyarrow, can quote a record."""
    cause = get_cause(error)
    kind = cause.partition(": ")[0]
    found = getattr(builtins, kind, None)
    is_of_python = isinstance(found, type) and not issubclass(found, OSError)
    return kind if is_of_python or kind.startswith("pyarrow.") else cause
