"""How long records stay and what they take, by the numbers of the classic book."""

import pytest

from benchmarks.capacity.plan import GIGABYTE, MEGABYTE, TERABYTE, Load
from benchmarks.capacity.retention import (
    compute_age,
    compute_disk_bytes,
    compute_map_bytes,
    compute_map_share,
    compute_segment_days,
    compute_topic_bytes_max,
    count_brokers_by_disk,
    count_closed_segments,
)


def test_tv17_a_segment_that_closes_after_ten_days_keeps_records_for_seventeen() -> None:
    segment_days = compute_segment_days(100 * MEGABYTE, 1 * GIGABYTE)
    age = compute_age(7, segment_days)

    assert segment_days == 10
    assert (age.least, age.most) == (7, 17)


def test_tv17_the_active_segment_is_kept_however_short_the_retention_is() -> None:
    assert compute_age(1, 5).closing == 5


def test_tv17_a_bound_by_size_is_one_of_each_partition() -> None:
    assert compute_topic_bytes_max(1 * GIGABYTE, 8) == 8 * GIGABYTE


def test_tv34_a_week_in_segments_of_a_day_is_seven_segments() -> None:
    assert count_closed_segments(7, 1) == 7
    assert count_closed_segments(7, 2) == 4


def test_tv19_the_map_of_the_log_cleaner_has_24_bytes_for_each_key() -> None:
    assert compute_map_bytes(1 * GIGABYTE, 1_000) == 24 * MEGABYTE
    assert compute_map_share(1 * GIGABYTE, 5) == 200 * MEGABYTE


@pytest.mark.parametrize(("replicas", "brokers"), [(1, 5), (2, 10)])
def test_ten_terabytes_need_five_brokers_of_two_or_ten_with_two_replicas(
    replicas: int, brokers: int
) -> None:
    assert count_brokers_by_disk(10 * TERABYTE * replicas, 2 * TERABYTE) == brokers


def test_a_terabyte_a_day_for_a_week_is_seven_and_a_tenth() -> None:
    assert compute_disk_bytes(1 * TERABYTE, days=7, replicas=1) == 77 * TERABYTE // 10


def test_a_day_of_a_load_is_its_mean_rate() -> None:
    assert Load(rate=100_000, peak=500_000, size=1_000).bytes_a_day == 8_640 * GIGABYTE
