"""How long records stay, and what disk and memory they take."""

import math
from dataclasses import dataclass

SECONDS_OF_A_DAY = 86_400
OVERHEAD_PERCENT = 10
"""Indexes, the segment that is written, and room to move partitions: a tenth of the data."""
MAP_ENTRY_BYTES = 24
"""Of the log cleaner: a hash of 16 bytes and an offset of 8 for each key of a segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """How old the oldest record is, in days.

    A segment is deleted as a whole, once its last record is older than the retention. `least` is
    what is promised; `closing` is when the active segment closes, as it is never deleted before;
    `most` is just before the closed one is deleted.
    """

    least: float
    closing: float
    most: float


def compute_segment_days(bytes_a_day: float, segment_bytes: int) -> float:
    """The time after which the active segment of a partition is full."""
    return segment_bytes / bytes_a_day


def compute_age(retention_days: float, segment_days: float) -> Age:
    return Age(
        least=retention_days,
        closing=max(retention_days, segment_days),
        most=retention_days + segment_days,
    )


def count_closed_segments(retention_days: float, segment_days: float) -> int:
    """Closed segments of a partition; the active one comes on top."""
    return math.ceil(retention_days / segment_days)


def compute_topic_bytes_max(retention_bytes: int, partitions: int) -> int:
    """`retention.bytes` is a bound of each partition, and not of the topic."""
    return retention_bytes * partitions


def compute_disk_bytes(bytes_a_day: int, days: int, replicas: int) -> int:
    """On all brokers, with the overhead."""
    return bytes_a_day * days * replicas * (100 + OVERHEAD_PERCENT) // 100


def count_brokers_by_disk(disk_bytes: int, broker_bytes: int) -> int:
    return -(-disk_bytes // broker_bytes)


def compute_map_bytes(segment_bytes: int, record_bytes: int) -> int:
    """The memory with which the log cleaner compacts one segment, if each record has its own
    key."""
    return segment_bytes // record_bytes * MAP_ENTRY_BYTES


def compute_map_share(map_bytes: int, threads: int) -> int:
    """What one of the cleaner's threads has of `log.cleaner.dedupe.buffer.size`."""
    return map_bytes // threads
