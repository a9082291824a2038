"""Orders count once: repeats, cancellations, and any order of the two."""

import pytest

from test_support.analytics.histories import (
    HOUR,
    at,
    cancelled,
    confirmed,
    sample,
)
from test_support.analytics.small_job import SmallJob

SAMPLE = (4, 4, 12, 44_506_56)


@pytest.fixture
def job() -> SmallJob:
    """A job that has read the sample."""
    return SmallJob().read(*sample())


def test_v2_repeated_records_count_once(job: SmallJob) -> None:
    job.read(*sample())

    assert job.hour(HOUR) == SAMPLE
    assert job.tally["duplicates"] == 16


def test_v2_a_record_repeated_in_its_own_batch_counts_once() -> None:
    job = SmallJob().read(*sample(), *sample())

    assert job.hour(HOUR) == SAMPLE
    assert job.tally["duplicates"] == 16


def test_a_repeat_of_an_evicted_order_is_counted_as_late(job: SmallJob) -> None:
    job.read(confirmed("much later", "Lily", ("iphone", 1), ordered_at=at(hour=5)))
    job.read(*sample())

    assert job.hour(HOUR) == SAMPLE
    assert (job.tally["late"], job.tally["duplicates"]) == (16, 0)


def test_v10_a_cancelled_order_takes_its_buyer_out(job: SmallJob) -> None:
    job.read(cancelled("Jack iphone", "Jack", ("iphone", 3), ordered_at=at(1 / 60)))

    assert job.hour(HOUR) == (3, 3, 9, 44_506_56 - 16_166_64)


def test_an_order_cancelled_in_its_own_batch_counts_nothing(job: SmallJob) -> None:
    order = confirmed("brief", "Jack", ("iphone", 1), ordered_at=at(10))
    job.read(order, cancelled("brief", "Jack", ("iphone", 1), ordered_at=at(10)))
    assert job.hour(HOUR) == SAMPLE

    job.read(order)
    assert job.hour(HOUR) == SAMPLE
    assert job.tally["duplicates"] == 1


def test_a_cancelled_order_confirmed_again_stays_out(job: SmallJob) -> None:
    order = confirmed("brief", "Jack", ("iphone", 1), ordered_at=at(10))
    job.read(order)
    job.read(cancelled("brief", "Jack", ("iphone", 1), ordered_at=at(10)))
    job.read(order)

    assert job.hour(HOUR) == SAMPLE
    assert job.tally["duplicates"] == 1


def test_a_cancellation_read_twice_takes_out_once(job: SmallJob) -> None:
    event = cancelled("Jack iphone", "Jack", ("iphone", 3), ordered_at=at(1 / 60))
    job.read(event, event)
    job.read(event)

    assert job.hour(HOUR)[:2] == (3, 3)
    assert (job.tally["cancellations"], job.tally["ignored"]) == (1, 2)


def test_a_cancellation_without_its_order_is_ignored(job: SmallJob) -> None:
    job.read(cancelled("unknown", "Jack", ("iphone", 3), ordered_at=at(10)))

    assert job.hour(HOUR) == SAMPLE
    assert job.tally["ignored"] == 1


def test_an_order_cancelled_before_its_confirmation_is_nothing_at_all(job: SmallJob) -> None:
    event = cancelled("pending", "Jack", ("iphone", 3), ordered_at=at(10), was_confirmed=False)
    job.read(event)

    assert job.hour(HOUR) == SAMPLE
    assert (job.tally["ignored"], job.tally["bad"]) == (0, 0)
