"""How much a task holds at once: bounded in records, and in bytes."""

import pytest

from analytics_spark.job import pack
from analytics_spark.job.blobs import from_bytes
from analytics_spark.job.topics import ORDERS, Kind
from test_support.analytics.histories import at, confirmed
from test_support.analytics.small_job import to_record_batch

BATCHES = [
    to_record_batch(
        [confirmed(f"order {number}", "Jack", ("iphone", 1), ordered_at=at())], buckets=4
    )
    for number in range(6)
]


def packed_at_once() -> list[int]:
    """How many orders each of the packed batches has."""
    packed = pack.pack(iter(BATCHES), topic=ORDERS, buckets=4)
    rows = [batch.to_pylist() for batch in packed]
    return [
        sum(from_bytes(row["body"]).num_rows for row in each if row["kind"] == Kind.ORDERS)
        for each in rows
    ]


def test_a_few_small_batches_are_packed_together() -> None:
    assert packed_at_once() == [6]


def test_what_is_held_is_bounded_in_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "ROWS_MAX", 4)
    assert packed_at_once() == [4, 2]


def test_what_is_held_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "BYTES_MAX", 2 * BATCHES[0].nbytes)
    assert packed_at_once() == [2, 2, 2]
