"""What a figure is to be, and whether it is."""

from dataclasses import dataclass
from enum import StrEnum

NOISE = 0.1
"""Share of its bound by which a goal can be missed: two runs of one release differ as much."""


class Verdict(StrEnum):
    MET = "met"
    NEARLY = "within noise"
    MISSED = "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A bound of a median, or of the median of its ratios to the limit."""

    bound: float
    is_lowest: bool
    is_ratio: bool = False

    def judge(self, figure: float) -> Verdict:
        """Whether a median, or a ratio, is within the bound."""
        short = self.bound - figure if self.is_lowest else figure - self.bound
        if short <= 0:
            return Verdict.MET
        return Verdict.NEARLY if short <= NOISE * self.bound else Verdict.MISSED

    def __str__(self) -> str:
        words = "at least" if self.is_lowest else "at most"
        return f"{words} {self.bound:,g}" + (" of it" if self.is_ratio else "")


def at_least(bound: float) -> Goal:
    return Goal(bound=bound, is_lowest=True)


def at_most(bound: float) -> Goal:
    return Goal(bound=bound, is_lowest=False)


def ratio_at_least(bound: float) -> Goal:
    return Goal(bound=bound, is_lowest=True, is_ratio=True)


def ratio_at_most(bound: float) -> Goal:
    return Goal(bound=bound, is_lowest=False, is_ratio=True)
