"""`rescale`: changes the number of shuffle partitions of the job's state.

The number is fixed in the checkpoint, and Spark changes it offline: the job must not run. The
change is a batch of its own, which reads nothing.
"""

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark.job import job, writer
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.generations import Generation
from analytics_spark.job.session import open_session
from analytics_spark.settings import JobSettings

FINISH_SECONDS_MAX = 300
"""How long the batch can take that the job left unfinished."""
STOPPED_SECONDS_MAX = 5
"""How long PostgreSQL can take to notice that the job has ended."""
POLL_SECONDS = 0.25
PLAIN = re.compile(r"[\w./+-]+", re.ASCII)
SHORT_FOLDER = "/tmp"  # noqa: S108 - a folder with a random name is made in it
"""TMPDIR is in the run folder, whose path can have a blank."""


class NotRescaled(Exception):
    """The state is unchanged; the message has the reason."""


def run(settings: JobSettings, partitions: int, stop: threading.Event) -> None:
    """The command `rescale`.

    Raises:
        NotRescaled, job.FAILURES: the message has the reason in one line.
    """
    if settings.shuffle_partitions not in (None, partitions):
        raise NotRescaled(
            f"SHUFFLE_PARTITIONS is {settings.shuffle_partitions}, and the job would not start with"
            f" {partitions} partitions: unset it first"
        )
    unset = settings.model_copy(update={"shuffle_partitions": None})
    generation = job.get_active_generation(settings.database_dsn)
    checkpoint = generation.get_checkpoint(settings.checkpoint_dir)
    with psycopg.connect(settings.database_dsn, autocommit=True) as connection:
        require_stopped(connection, generation)
    before = checkpoint.get_partitions(checkpoint.newest_done)
    if before is None:
        raise NotRescaled("no batch is done yet: set SHUFFLE_PARTITIONS, and start the job")
    if before == partitions:
        sys.stdout.write(f"the state has {partitions} partitions\n")
        return
    finish_last_batch(unset, generation, stop)
    with psycopg.connect(settings.database_dsn, autocommit=True) as connection:
        require_stopped(connection, generation)
        split(unset, generation, partitions)
    sys.stdout.write(f"the state has {partitions} partitions instead of {before}\n")


def require_stopped(connection: psycopg.Connection, generation: Generation) -> None:
    """Take the writer's lock until the connection is closed.

    Raises:
        NotRescaled: the job holds it.
    """
    deadline = time.monotonic() + STOPPED_SECONDS_MAX
    while not writer.try_lock(connection, generation):
        if time.monotonic() > deadline:
            raise NotRescaled("the job runs: stop it first, as `make rescale` does")
        time.sleep(POLL_SECONDS)


def finish_last_batch(settings: JobSettings, generation: Generation, stop: threading.Event) -> None:
    """Finish a batch in which the job was stopped: with another number, its input would pass the
    epoch and count again. What else the topics have is for the job, and its new partitions."""
    checkpoint = generation.get_checkpoint(settings.checkpoint_dir)
    planned = checkpoint.newest_planned
    if planned == checkpoint.newest_done or checkpoint.is_rescale(planned):
        return
    with job.open_query(settings, generation) as (start, _):
        # A plan that a power cut has torn is gone by now, and `once` would plan all that there is.
        if checkpoint.newest_planned > checkpoint.newest_done:
            finish(start, stop)


def finish(start: Callable[..., StreamingQuery], stop: threading.Event) -> None:
    """Run the batch that was left unfinished, and no other.

    Raises:
        NotRescaled: it was stopped, or takes too long. Or the query's error.
    """
    with job.stop_at_end(start(once=True)) as live:
        for _ in range(round(FINISH_SECONDS_MAX / POLL_SECONDS)):
            if not live.isActive:
                break
            if stop.wait(POLL_SECONDS):
                raise NotRescaled("stopped")
        else:
            raise NotRescaled(f"the last batch was not done within {FINISH_SECONDS_MAX} s")
        if error := live.exception():
            raise error


def split(settings: JobSettings, generation: Generation, partitions: int) -> None:
    """Let Spark write the state with another number of partitions. Raises NotRescaled."""
    checkpoint = generation.get_checkpoint(settings.checkpoint_dir)
    spark = open_session(settings)
    try:
        # State stores need a coordinator, which Spark starts with its query manager.
        assert not spark.streams.active
        with plain(checkpoint) as same:
            # Experimental, and so private, in Spark 4.2.
            spark._streamingCheckpointManager.repartition(same.location, partitions)
    except Py4JJavaError as error:
        raise NotRescaled(f"Spark refuses: {get_root_cause(error)}") from error
    except PySparkException as error:
        raise NotRescaled(f"Spark refuses: {job.get_cause(error)}") from error
    finally:
        spark.stop()


@contextmanager
def plain(checkpoint: Checkpoint) -> Iterator[Checkpoint]:
    """Yield the same checkpoint by a path of which a URI escapes nothing; of a blank it would.

    Spark 4.2 makes a URI of the path of a repartition, and takes that for a path again. The link
    is on this machine only: where workers have others, paths are plain.
    """
    if PLAIN.fullmatch(str(checkpoint.path.absolute())):
        yield checkpoint
        return
    with TemporaryDirectory(dir=SHORT_FOLDER) as folder:
        link = Path(folder) / "checkpoint"
        link.symlink_to(checkpoint.path.absolute(), target_is_directory=True)
        yield Checkpoint(link)


def get_root_cause(error: Py4JJavaError) -> str:
    """The message of Java's root cause, as one line."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).splitlines()[0]
