"""A goal is met, missed, or missed by no more than two runs differ."""

import pytest

from benchmarks.goals import Goal, Verdict, at_least, at_most, ratio_at_least, ratio_at_most
from benchmarks.series import Series


@pytest.mark.parametrize(
    ("goal", "figure", "verdict"),
    [
        (at_most(100), 100, Verdict.MET),
        (at_most(100), 110, Verdict.NEARLY),
        (at_most(100), 111, Verdict.MISSED),
        (at_least(100), 100, Verdict.MET),
        (at_least(100), 90, Verdict.NEARLY),
        (at_least(100), 89, Verdict.MISSED),
    ],
)
def test_a_goal_is_judged(goal: Goal, figure: float, verdict: Verdict) -> None:
    assert goal.judge(figure) == verdict


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        (ratio_at_least(0.5), Verdict.MET),
        (ratio_at_least(0.6), Verdict.MISSED),
        (ratio_at_most(0.5), Verdict.MET),
        (at_most(0.5), Verdict.MISSED),
        (None, None),
    ],
)
def test_a_ratio_is_judged_by_its_goal(goal: Goal | None, verdict: Verdict | None) -> None:
    limit = Series(name="limit", unit="1/s", rounds=(20.0, 40.0))
    ours = Series(name="ours", unit="1/s", rounds=(10.0, 20.0), limit=limit, goal=goal)

    assert ours.verdict == verdict
