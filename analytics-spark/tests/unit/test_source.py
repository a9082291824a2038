"""Which records a batch has, and which of them a task reads."""

import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from analytics_spark.job import source
from analytics_spark.job.log_reader import Range
from analytics_spark.job.source import from_plain, limit_ends, share, to_plain

ORDERS = [TopicPartition("orders.v1", number) for number in range(4)]
USERS = TopicPartition("users.v1", 0)


def test_offsets_are_stored_as_spark_stores_those_of_kafka() -> None:
    offsets = {ORDERS[1]: 7, USERS: 3, ORDERS[0]: 5}
    assert to_plain(offsets) == {"orders.v1": {"0": 5, "1": 7}, "users.v1": {"0": 3}}
    assert list(to_plain(offsets)) == ["orders.v1", "users.v1"]  # equal offsets are equal texts
    assert from_plain(to_plain(offsets)) == offsets


def test_a_limit_is_shared_in_proportion_to_what_waits() -> None:
    begins = {ORDERS[0]: 100, ORDERS[1]: 0, USERS: 0}
    ends = {ORDERS[0]: 400, ORDERS[1]: 100, ORDERS[2]: 0, USERS: 9_000}
    assert limit_ends(begins, ends, {"orders.v1": 40}) == {
        ORDERS[0]: 130,
        ORDERS[1]: 10,
        ORDERS[2]: 0,
        USERS: 9_000,
    }


def test_less_than_the_limit_is_read_whole() -> None:
    ends = {ORDERS[0]: 10, ORDERS[1]: 30}
    assert limit_ends({}, ends, {"orders.v1": 40}) == ends


@given(st.lists(st.integers(0, 1_000), min_size=4, max_size=4), st.integers(1, 100))
def test_a_limited_batch_makes_progress_in_each_partition(waiting: list[int], limit: int) -> None:
    ends = dict(zip(ORDERS, waiting, strict=True))
    limited = limit_ends({}, ends, {"orders.v1": limit})
    for partition, end in ends.items():
        assert min(end, 1) <= limited[partition] <= end
    assert sum(limited.values()) <= limit + len(ORDERS)


@given(st.lists(st.integers(0, 30), min_size=4, max_size=4), st.integers(1, 4))
def test_tasks_read_every_record_once_and_about_as_many(waiting: list[int], tasks: int) -> None:
    ranges = [
        Range(partition=partition, first=100, end=100 + count)
        for partition, count in zip(ORDERS, waiting, strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "TASKS_MAX", tasks)
        patch.setattr(source, "RECORDS_OF_A_TASK_MIN", 1)
        shares = share(ranges)

    read = [
        (each.partition, offset)
        for of_task in shares
        for each in of_task
        for offset in range(each.first, each.end)
    ]
    wanted = [(each.partition, offset) for each in ranges for offset in range(each.first, each.end)]
    assert read == wanted
    assert len(shares) <= tasks
    sizes = [sum(each.end - each.first for each in of_task) for of_task in shares]
    assert all(size == max(sizes) for size in sizes[:-1])


def test_a_small_batch_is_one_task() -> None:
    few = [Range(partition=each, first=0, end=source.RECORDS_OF_A_TASK_MIN // 4) for each in ORDERS]
    assert len(share(few)) == 1
    assert share([]) == []
