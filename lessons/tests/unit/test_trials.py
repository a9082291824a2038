"""The steps of *tuning*, before any is run."""

from contextlib import ExitStack

import pytest

from fetching.errors import Failure
from lessons.experiment import Experiment
from lessons.lab import Lab
from lessons.lesson import Lesson
from lessons.tuning.experiment import make_trials


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batches": 0}, "batches=0 of orders=50000"),
        ({"orders": 5}, "batches=10 of orders=5"),
        ({"batches": 91}, "there are 1 to 90"),
        ({"partitions": 0}, "partitions=0: there is at least one"),
        ({"at_a_time": 0}, "at_a_time=0: there is at least one"),
    ],
    ids=str,
)
def test_a_run_that_cannot_be_is_refused_before_anything_is_started(
    options: dict[str, int], message: str
) -> None:
    with ExitStack() as stack, pytest.raises(Failure, match=message):
        Experiment(Lesson("tuning")).run(Lab("", stack), options)


@pytest.mark.parametrize(("orders", "batches", "read_in"), [(50, 10, 10), (50, 7, 7), (10, 6, 5)])
def test_each_batch_but_the_last_is_full(orders: int, batches: int, read_in: int) -> None:
    _, few, *_ = make_trials(orders, batches, partitions=4)

    assert few.shape.batches == read_in
    assert few.job.orders_max * (read_in - 1) < orders <= few.job.orders_max * read_in
