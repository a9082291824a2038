"""Bars are as high as their numbers, on a scale of few round steps."""

from datetime import timedelta

import pytest

from analytics_spark.serving.chart import Measure, chart, money, scale
from analytics_spark.serving.hour_queries import Totals
from test_support.analytics.histories import HOUR, at

FOUR = Totals(local_buyers=4, purchases=5, quantity=12, cents=44_506_56)


@pytest.mark.parametrize(
    ("largest", "measure", "step", "top"),
    [
        (0, "buyers", 1, 1),
        (4, "buyers", 1, 4),
        (5, "buyers", 2, 6),
        (9, "purchases", 5, 10),
        (60, "quantity", 20, 60),
        (61, "quantity", 20, 80),
        (44_506_56, "amount", 2_000_000, 6_000_000),
        (1, "amount", 100, 100),
    ],
)
def test_a_scale_has_few_steps_of_round_numbers(
    largest: int, measure: Measure, step: int, top: int
) -> None:
    assert scale(largest, measure) == (step, top)


@pytest.mark.parametrize("largest", [*range(300), 10**6 - 1, 10**12 + 1])
def test_no_bar_is_higher_than_the_scale(largest: int) -> None:
    step, top = scale(largest, "buyers")

    assert top >= largest
    assert top % step == 0
    assert 1 <= top // step <= 4


def test_each_hour_has_a_bar_also_without_purchases() -> None:
    shown = chart(HOUR - timedelta(hours=2), at(60), {HOUR: FOUR}, at(-60), "buyers")

    assert [bar.text for bar in shown.bars] == ["0", "0", "4"]
    assert [bar.size for bar in shown.bars] == [0, 0, 1]
    assert [bar.is_empty for bar in shown.bars] == [True, True, False]
    assert [bar.is_final for bar in shown.bars] == [True, False, False]
    assert [tick.text for tick in shown.ticks] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("measure", "text"),
    [("buyers", "4"), ("purchases", "5"), ("quantity", "12"), ("amount", "44,506.56")],
)
def test_a_bar_shows_the_chosen_measure(measure: Measure, text: str) -> None:
    [bar] = chart(HOUR, at(60), {HOUR: FOUR}, None, measure).bars

    assert bar.text == text
    assert not bar.is_final


def test_money_has_two_decimals_and_no_float() -> None:
    assert money(10**17 + 1) == "1,000,000,000,000,000.01"
