"""What the state keeps: as little as corrections need, in few pieces."""

import pytest

from analytics_spark.job import retained
from test_support.analytics.histories import HOUR, at, confirmed, deleted, sample
from test_support.analytics.small_job import SmallJob


def test_many_small_batches_make_one_chunk() -> None:
    job = SmallJob(buckets=1).read(*sample())

    for number in range(20):
        job.read(confirmed(f"order {number}", "Jack", ("iphone", 1), ordered_at=at(number)))

    assert job.chunks() == [1]
    assert job.hour(HOUR)[:2] == (4, 24)


def test_a_full_chunk_is_not_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retained, "SMALL_CHUNK_ROWS", 1)
    job = SmallJob(buckets=1).read(*sample())

    job.read(confirmed("next", "Jack", ("iphone", 1), ordered_at=at(30)))

    assert job.chunks() == [2]


def test_a_repeat_is_found_in_any_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retained, "SMALL_CHUNK_ROWS", 1)
    job = SmallJob(buckets=1).read(*sample())
    events = [
        confirmed(f"order {number}", "Jack", ("iphone", 1), ordered_at=at(number))
        for number in range(5)
    ]
    for event in events:
        job.read(event)

    job.read(*events)

    assert job.tally["duplicates"] == 5


def test_final_orders_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retained, "SMALL_CHUNK_ROWS", 1)
    job = SmallJob(buckets=1).read(*sample())
    job.read(confirmed("much later", "Lily", ("iphone", 1), ordered_at=at(hour=5)))
    assert job.chunks() == [2]

    job.read(deleted("Mike", since=at()))

    assert job.chunks() == [1]
    assert job.hour(HOUR)[:2] == (4, 4)
