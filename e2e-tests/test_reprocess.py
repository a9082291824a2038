"""Cells are made anew, shown and taken back, and state is split otherwise, while orders come."""

from clients import Hometown
from embedded import supervision
from eventually import eventually
from sample import Sample
from stack import Stack


def job_pid(stack: Stack) -> int:
    return (supervision.programs(stack.folder) or {})["analytics-job"].pid


def buy(hometown: Hometown, sample: Sample) -> None:
    """Jack buys one iphone more, which is local."""
    hometown.place_order(sample.users["Jack"], [(sample.items["iphone"], 1)], sample.at(50))


def job_with_other_pid(stack: Stack, pid: int) -> None:
    eventually(lambda: job_pid(stack), lambda seen: seen not in (0, pid), what="another job")


def demand_purchases(hometown: Hometown, sample: Sample, number: int) -> None:
    eventually(
        lambda: hometown.hour(sample.hour)["purchases"],
        lambda seen: seen == number,
        what=f"{number} purchases",
    )


def test_hours_are_counted_anew_and_back_while_orders_come(
    stack: Stack, hometown: Hometown, sample: Sample
) -> None:
    def counted(number: int) -> None:
        demand_purchases(hometown, sample, number)

    counted(4)
    first = job_pid(stack)
    told = stack.made("reprocess", "args=--switch")
    assert "begins with the topics' first records" in told
    assert f"{sample.hour:%Y-%m-%dT%H} " not in told
    assert "is shown instead of" in told
    buy(hometown, sample)
    job_with_other_pid(stack, first)
    counted(5)

    second = job_pid(stack)
    stack.made("reprocess", "args=--roll-back")
    buy(hometown, sample)
    job_with_other_pid(stack, second)
    counted(6)

    assert "is removed" in stack.made("reprocess", "args=--drop")
    counted(6)


def test_the_state_is_split_otherwise_while_orders_come(
    stack: Stack, hometown: Hometown, sample: Sample
) -> None:
    demand_purchases(hometown, sample, 4)
    assert "the state has 4 partitions instead of 2" in stack.made("rescale", "partitions=4")
    buy(hometown, sample)
    demand_purchases(hometown, sample, 5)
