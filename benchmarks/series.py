"""What was measured: each quantity in rounds, with the limit measured in the same rounds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.goals import Goal, Verdict
from local_stack import progress
from local_stack.figures import Figure

Samples = defaultdict[str, list[float]]
"""Values by the name of the quantity, one per round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One quantity. `rounds` of a limit are the same rounds as those that it is the limit of."""

    name: str
    unit: str
    rounds: tuple[float, ...]
    limit: "Series | None" = None
    goal: Goal | None = None

    @property
    def value(self) -> float:
        return median(self.rounds)

    @property
    def ratio(self) -> float | None:
        """The median of the rounds' ratios: other load on the machine affects both alike."""
        if self.limit is None:
            return None
        pairs = zip(self.rounds, self.limit.rounds, strict=True)
        return median(mine / limit for mine, limit in pairs)

    @property
    def verdict(self) -> Verdict | None:
        """Whether the goal is met; None without a goal."""
        if self.goal is None:
            return None
        if not self.goal.is_ratio:
            return self.goal.judge(self.value)
        assert self.ratio is not None, f"{self.name} is compared with nothing"
        return self.goal.judge(self.ratio)


def series(
    samples: Samples,
    name: str,
    unit: str,
    *,
    limit: Series | None = None,
    goal: Goal | None = None,
) -> Series:
    """The series of what was sampled under `name`."""
    return Series(name=name, unit=unit, rounds=tuple(samples[name]), limit=limit, goal=goal)


def as_figures(measured: Sequence[Series]) -> list[Figure]:
    """The median of each series, and its range if it has one."""
    return [figure for each in measured for figure in (median_figure(each), *range_figures(each))]


def median_figure(each: Series) -> Figure:
    return Figure(
        name=each.name,
        value=each.value,
        unit=each.unit,
        ratio=each.ratio,
        ratio_to=each.limit.name if each.limit else None,
    )


def range_figures(each: Series) -> list[Figure]:
    if len(each.rounds) == 1:
        return []
    return [
        Figure(name=f"{each.name}, lowest", value=min(each.rounds), unit=each.unit),
        Figure(name=f"{each.name}, highest", value=max(each.rounds), unit=each.unit),
    ]


def as_table(measured: Sequence[Series]) -> str:
    header = ("", "measured", "median", "range", "unit", "ratio", "goal", "")
    numbers = {each.name: number for number, each in enumerate(measured, start=1)}
    return progress.table(header, [format_row(each, numbers) for each in measured])


def format_row(each: Series, numbers: Mapping[str, int]) -> tuple[str, ...]:
    """A line of the table; a ratio names the line of its limit."""
    ratio = f"{each.ratio:.2f} of line {numbers[each.limit.name]}" if each.limit else ""
    return (
        str(numbers[each.name]),
        each.name,
        format_number(each.value),
        format_range(each.rounds),
        each.unit,
        ratio,
        str(each.goal or ""),
        str(each.verdict or ""),
    )


def format_range(rounds: Sequence[float]) -> str:
    if len(rounds) == 1:
        return ""
    return f"{format_number(min(rounds))} to {format_number(max(rounds))}"


def format_number(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
