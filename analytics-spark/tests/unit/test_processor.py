"""The vectors that pin the answer, on the operator without Spark; batches are as in a live job."""

from dataclasses import replace

import pytest

from analytics_spark.job.cells import KEY, NOBODY, SALE_KEY
from test_support.analytics.histories import (
    HOUR,
    at,
    confirmed,
    deleted,
    id_of,
    moved,
    origin_corrected,
    registered,
    sample,
)
from test_support.analytics.small_job import RECORDED_AT, SmallJob, get_buyer

SAMPLE = (4, 4, 12, 44_506_56)


@pytest.fixture
def job() -> SmallJob:
    """A job that has read the sample."""
    return SmallJob().read(*sample())


def test_v1_the_sample_has_four_local_buyers(job: SmallJob) -> None:
    assert job.hour(HOUR) == SAMPLE
    assert job.everything(HOUR) == (16, 55, 203_588_40)
    assert job.tally["counted"] == 16


def test_what_is_not_local_names_neither_buyer_nor_item(job: SmallJob) -> None:
    others = [cell for cell in job.cells() if get_buyer(cell) == NOBODY]

    assert len(others) == 12
    assert {cell[KEY.index("item_id")] for cell in others} == {NOBODY}


def test_sales_are_all_purchases_by_item(job: SmallJob) -> None:
    found = {sale[SALE_KEY.index("item_id")]: amounts for sale, amounts in job.sales().items()}

    assert found == {
        id_of("iphone"): (4, 14, 14 * 5_388_88),
        id_of("ipad"): (4, 13, 13 * 4_888_88),
        id_of("iwatch"): (4, 15, 15 * 2_668_88),
        id_of("ipod"): (4, 13, 13 * 1_888_88),
    }


def test_a_sale_moves_with_the_origin_of_its_item(job: SmallJob) -> None:
    job.read(origin_corrected("iphone", "SH"))

    [origin] = {sale[SALE_KEY.index("origin")] for sale in job.sales() if id_of("iphone") in sale}
    assert origin == "SH"


def test_of_two_unknown_ones_nothing_is_local() -> None:
    """Neither the user nor the item is known: no place equals no place."""
    job = SmallJob().read(confirmed("early", "Tom", ("iphone", 2), ordered_at=at(40)))

    assert job.hour(HOUR) == (0, 0, 0, 0)
    assert job.everything(HOUR) == (1, 2, 2 * 5_388_88)


def test_what_becomes_local_leaves_the_others(job: SmallJob) -> None:
    job.read(origin_corrected("iphone", "SH"))

    assert job.everything(HOUR) == (16, 55, 203_588_40)


def test_v3_the_last_millisecond_belongs_to_its_hour(job: SmallJob) -> None:
    job.read(confirmed("last", "Jack", ("iphone", 1), ordered_at=at(60 - 0.001 / 60)))

    assert job.hour(HOUR)[:2] == (4, 5)
    assert job.hour(at(hour=1))[:2] == (0, 0)


def test_v4_the_first_moment_of_an_hour_belongs_to_it(job: SmallJob) -> None:
    job.read(confirmed("next", "Jack", ("iphone", 1), ordered_at=at(hour=1)))

    assert job.hour(at(hour=1))[:2] == (1, 1)
    assert job.hour(HOUR) == SAMPLE


def test_v5_an_order_read_before_its_user_counts_when_the_user_arrives(job: SmallJob) -> None:
    job.read(confirmed("early", "Tom", ("iphone", 1), ordered_at=at(40)))
    assert job.hour(HOUR) == SAMPLE

    job.read(registered("Tom", "BJ"))
    assert job.hour(HOUR)[:2] == (5, 5)


def test_v6_an_order_is_judged_by_the_address_at_its_time(job: SmallJob) -> None:
    job.read(moved("Jack", "SH", since=at(30)))
    job.read(
        confirmed("ipad", "Jack", ("ipad", 1), ordered_at=at(31)),
        confirmed("iphone", "Jack", ("iphone", 1), ordered_at=at(31)),
    )

    assert job.hour(HOUR) == (4, 5, 13, 44_506_56 + 4_888_88)


def test_v7_a_move_reported_late_gives_the_same_answer(job: SmallJob) -> None:
    job.read(
        confirmed("ipad", "Jack", ("ipad", 1), ordered_at=at(31)),
        confirmed("iphone", "Jack", ("iphone", 1), ordered_at=at(31)),
    )
    job.read(moved("Jack", "SH", since=at(30)))

    assert job.hour(HOUR) == (4, 5, 13, 44_506_56 + 4_888_88)


def test_v8_an_order_within_the_grace_corrects_its_hour_in_place(job: SmallJob) -> None:
    job.read(confirmed("later", "Lily", ("iphone", 1), ordered_at=at(30, hour=1)))
    job.read(confirmed("earlier", "Jack", ("iphone", 2), ordered_at=at(50)))

    assert job.hour(HOUR)[:2] == (4, 5)
    assert job.tally["late"] == 0


def test_v9_an_order_after_the_grace_is_dropped_and_counted(job: SmallJob) -> None:
    job.read(confirmed("much later", "Lily", ("iphone", 1), ordered_at=at(hour=5)))
    job.read(confirmed("too late", "Jack", ("iphone", 2), ordered_at=at(50)))

    assert job.hour(HOUR) == SAMPLE
    assert job.tally["late"] == 1


def test_v11_a_corrected_origin_moves_the_cells_in_its_batch(job: SmallJob) -> None:
    job.read(origin_corrected("iphone", "SH"))

    # Jack's iphones came from SH all the time, and so did Lily's.
    assert job.hour(HOUR) == (3, 4, 11, 44_506_56 - 16_166_64 + 2 * 5_388_88)


def test_v12_two_local_purchases_of_a_user_are_one_buyer(job: SmallJob) -> None:
    job.read(confirmed("again", "Jack", ("iphone", 1), ("iphone", 2), ordered_at=at(10)))

    assert job.hour(HOUR)[:2] == (4, 6)


def test_a_deleted_user_keeps_earlier_orders_and_makes_no_local_ones(job: SmallJob) -> None:
    job.read(deleted("Jack", since=at(30)))
    job.read(confirmed("after", "Jack", ("iphone", 1), ordered_at=at(40)))

    assert job.hour(HOUR) == SAMPLE


def test_of_two_versions_of_one_moment_the_later_one_holds(job: SmallJob) -> None:
    job.read(
        moved("Jack", "GZ", since=at(), version=3),
        moved("Jack", "BJ", since=at(), version=2),
    )

    assert job.hour(HOUR)[:2] == (4, 4)  # his ipod instead of his iphone


def test_a_final_order_is_not_corrected(job: SmallJob) -> None:
    job.read(confirmed("much later", "Lily", ("iphone", 1), ordered_at=at(hour=5)))
    job.read(origin_corrected("iphone", "SH"))

    assert job.hour(HOUR) == SAMPLE
    assert job.hour(at(hour=5))[:2] == (1, 1)  # this one is not final yet


def test_only_orders_with_a_recorded_trace_are_sampled(job: SmallJob) -> None:
    traceparent = f"00-{1:032x}-{1:016x}-01"
    event = confirmed("traced", "Jack", ("ipad", 1), ordered_at=at(10), traceparent=traceparent)
    job.read(event, replace(event, traceparent=None))

    assert [sample["traceparent"] for sample in job.samples] == [traceparent]


def test_an_order_that_counts_has_the_time_of_its_confirmation() -> None:
    lines = ("ipad", 1), ("iphone", 1)
    first, second, third = (confirmed("new", "Jack", *lines, ordered_at=at(10)) for _ in range(3))
    job = SmallJob().read(first, second).read(third)

    assert job.recorded == [RECORDED_AT], "neither lines nor repeats are orders"
