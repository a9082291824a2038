"""How long the job rests after a batch.

A batch takes most of a second of CPU, whether it has twenty records or two thousand. Without a
rest, a machine that is short of CPU would spend half of it on many small batches.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.query import Sink, get_records_max
from analytics_spark.job.topics import ITEMS, ORDERS, USERS
from analytics_spark.settings import JobSettings

LIVE_RECORDS_PER_SECOND = 200
"""Up to this rate, of all topics together, the job does not rest. With each order come about three
records, so these are 60 to 70 orders a second."""

BACKLOG_SHARE = 0.5
"""A batch with this share of the records that it can have of a topic does not keep up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast records arrive, and how long a batch takes."""

    records_per_second: float
    """Arrived between the plan of the batch before it and its own; 0 if that is unknown."""
    batch_seconds: float
    """From its plan to its commit."""
    is_catching_up: bool
    """Whether there was more to read than a batch can have, or nearly as much."""


def get_rest_seconds(pace: Pace, row_age_seconds_max: float) -> float:
    """How long to rest, in seconds, 0 or more.

    The rest is in proportion to the batch, and grows with the rate: as long as the batch at twice
    LIVE_RECORDS_PER_SECOND, twice as long at three times that rate. The age of a row limits it: a
    record that just missed a batch waits for that batch, for the rest, and for its own batch.
    """
    if pace.is_catching_up:
        return 0.0
    share = pace.records_per_second / LIVE_RECORDS_PER_SECOND - 1
    longest = row_age_seconds_max - 2 * pace.batch_seconds
    return max(0.0, min(share * pace.batch_seconds, longest))


def read_pace(
    checkpoint: Checkpoint, batch_id: int, now: float, records_max: Mapping[str, int]
) -> Pace:
    """The pace of a batch that was committed `now`, in seconds since 1970.

    `records_max` has the limits of the topics that have one.
    """
    records = {
        topic: sum(end - first for first, end in partitions.values())
        for topic, partitions in checkpoint.get_ranges(batch_id).items()
    }
    before, planned_at = (checkpoint.get_planned_at(each) for each in (batch_id - 1, batch_id))
    # A clock that was set back counts as unknown.
    interval = planned_at - before if before and planned_at else 0.0
    return Pace(
        records_per_second=sum(records.values()) / interval if interval > 0 else 0.0,
        batch_seconds=max(0.0, now - planned_at) if planned_at else 0.0,
        is_catching_up=any(
            records.get(topic, 0) >= BACKLOG_SHARE * limit for topic, limit in records_max.items()
        ),
    )


def rest_after(
    sink: Sink, checkpoint: Checkpoint, settings: JobSettings, stop: threading.Event
) -> Sink:
    """The sink with a rest after each batch, which `stop` ends.

    Spark has no place for it between two batches, so it belongs to the batch: one whose job is
    killed in its rest runs again, and its epoch refuses it.
    """
    limits = {topic.name: get_records_max(topic, settings) for topic in (USERS, ITEMS, ORDERS)}
    records_max = {name: limit for name, limit in limits.items() if limit is not None}

    def write(frame: DataFrame, batch_id: int) -> None:
        sink(frame, batch_id)
        pace = read_pace(checkpoint, batch_id, time.time(), records_max)
        stop.wait(get_rest_seconds(pace, settings.row_age_seconds_max))

    return write
