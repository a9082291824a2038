"""Cells are recomputed, activated, rolled back, and state is repartitioned, while orders come."""

import pytest

from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.sample import Sample
from test_support.system.stack import Stack

pytestmark = pytest.mark.verify(part="end-to-end")


def buy(hometown: Hometown, sample: Sample) -> None:
    """Jack buys one iphone more, which is local."""
    hometown.place_order(sample.users["Jack"], [(sample.items["iphone"], 1)], sample.at(50))


def life_of_job(stack: Stack) -> str | None:
    return stack.lives().get("analytics-job")


def demand_another_job(stack: Stack, before: str | None) -> None:
    eventually(
        lambda: life_of_job(stack), lambda seen: seen not in (None, before), what="another job"
    )


def demand_purchases(hometown: Hometown, sample: Sample, number: int) -> None:
    eventually(
        lambda: hometown.hour(sample.hour)["purchases"],
        lambda seen: seen == number,
        what=f"{number} purchases",
    )


def test_hours_are_recomputed_rolled_back_and_repartitioned_while_orders_come(
    stack: Stack, hometown: Hometown, sample: Sample
) -> None:
    def counted(number: int) -> None:
        demand_purchases(hometown, sample, number)

    counted(4)
    first = life_of_job(stack)
    printed = stack.make_output("reprocess", "args=--switch")
    assert "starts at the first records of the topics" in printed
    assert f"{sample.hour:%Y-%m-%dT%H} " not in printed
    assert "is shown instead of" in printed
    buy(hometown, sample)
    demand_another_job(stack, first)
    counted(5)

    second = life_of_job(stack)
    stack.make_output("reprocess", "args=--roll-back")
    buy(hometown, sample)
    demand_another_job(stack, second)
    assert "the state has 4 partitions instead of 2" in stack.make_output("rescale", "partitions=4")
    buy(hometown, sample)
    counted(7)

    assert "is removed" in stack.make_output("reprocess", "args=--drop")
    counted(7)
