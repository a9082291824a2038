"""`rescale`: the job's state, split into another number of shuffle partitions.

Spark fixes the number in the checkpoint, and splits the state offline: the job must not run. That
takes a batch of its own, which reads nothing.
"""

import sys
import threading
import time

import psycopg
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from analytics_spark.job import job, writer
from analytics_spark.job.generations import Generation
from analytics_spark.job.session import open_session
from analytics_spark.settings import JobSettings

SETTLE_SECONDS_MAX = 300
"""How long the batch may take that the job has left unfinished."""
STOPPED_SECONDS_MAX = 5
"""How long PostgreSQL may take to notice that the job has gone."""
POLL_SECONDS = 0.25


class NotRescaled(Exception):
    """Why the state is as it was."""


def run(settings: JobSettings, partitions: int, stop: threading.Event) -> None:
    """The command `rescale`.

    Raises:
        NotRescaled, job.FAILURES: one line says why.
    """
    if settings.shuffle_partitions not in (None, partitions):
        raise NotRescaled(
            f"SHUFFLE_PARTITIONS is {settings.shuffle_partitions}, and the job would not start with"
            f" {partitions} partitions: unset it first"
        )
    unset = settings.model_copy(update={"shuffle_partitions": None})
    generation = job.active_generation(settings.database_dsn)
    checkpoint = generation.get_checkpoint(settings.checkpoint_dir)
    with psycopg.connect(settings.database_dsn, autocommit=True) as connection:
        demand_stopped(connection, generation)
    before = checkpoint.get_partitions(checkpoint.newest_done)
    if before is None:
        raise NotRescaled("no batch was done yet: set SHUFFLE_PARTITIONS, and start the job")
    if before == partitions:
        sys.stdout.write(f"the state has {partitions} partitions\n")
        return
    settle(unset, generation, stop)
    with psycopg.connect(settings.database_dsn, autocommit=True) as connection:
        demand_stopped(connection, generation)
        split(unset, generation, partitions)
    sys.stdout.write(f"the state has {partitions} partitions instead of {before}\n")


def demand_stopped(connection: psycopg.Connection, generation: Generation) -> None:
    """Take the writer's lock, for as long as the connection lives.

    Raises:
        NotRescaled: the job has it.
    """
    deadline = time.monotonic() + STOPPED_SECONDS_MAX
    while not writer.try_lock(connection, generation):
        if time.monotonic() > deadline:
            raise NotRescaled("the job runs: stop it first, as `make rescale` does")
        time.sleep(POLL_SECONDS)


def settle(settings: JobSettings, generation: Generation, stop: threading.Event) -> None:
    """Finish a batch that the job was stopped in: its input must not get another batch's number,
    under which the epoch would count it again."""
    checkpoint = generation.get_checkpoint(settings.checkpoint_dir)
    planned = checkpoint.newest_planned
    if planned == checkpoint.newest_done or checkpoint.is_rescale(planned):
        return
    with (
        job.filling(settings, generation) as start,
        job.started(start(to_the_end=True)) as live,
    ):
        for _ in range(round(SETTLE_SECONDS_MAX / POLL_SECONDS)):
            if not live.isActive:
                break
            if stop.wait(POLL_SECONDS):
                raise NotRescaled("stopped")
        else:
            raise NotRescaled(f"the last batch was not done within {SETTLE_SECONDS_MAX} s")
        if error := live.exception():
            raise error


def split(settings: JobSettings, generation: Generation, partitions: int) -> None:
    """Raises NotRescaled: Spark refuses."""
    checkpoint = generation.get_checkpoint(settings.checkpoint_dir)
    spark = open_session(settings)
    try:
        # State stores ask a coordinator, which Spark starts with what manages queries.
        assert not spark.streams.active
        # Experimental, and so private, in Spark 4.2.
        spark._streamingCheckpointManager.repartition(
            checkpoint.path.absolute().as_uri(), partitions
        )
    except Py4JJavaError as error:
        raise NotRescaled(f"Spark refuses: {root_of(error)}") from error
    except PySparkException as error:
        raise NotRescaled(f"Spark refuses: {job.cause_of(error)}") from error
    finally:
        spark.stop()


def root_of(error: Py4JJavaError) -> str:
    """What Java says of the first cause, as one line."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).splitlines()[0]
