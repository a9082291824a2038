"""The results of a run, as a short table and as figures."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_stack import progress
from local_stack.figures import Figure
from verification.load.actions import NAMES, Repeat
from verification.load.driver import LATE_SECONDS, Outcome
from verification.load.expected import Ledger
from verification.load.plan import Burst

NOTHING = "-"
KEPT_PART = 0.99
"""The share of actions that must begin when due; below it, this program did not keep the rate."""
KEPT_UP_PART = 0.9
"""The share of the rate that must be answered; below it, the system did not keep the rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Outcomes of one kind of action, `all` for everything."""

    name: str
    outcomes: Sequence[Outcome]

    @property
    def milliseconds(self) -> list[float]:
        """From when each was due until it was answered, for those that were sent and answered."""
        return [
            1000 * each.answered_seconds
            for each in self.outcomes
            if each.response is not None and not is_skipped(each)
        ]

    @property
    def refused(self) -> int:
        return sum(
            each.response is not None and not each.response.is_accepted and not is_skipped(each)
            for each in self.outcomes
        )

    @property
    def sent_again(self) -> int:
        """After a failure, or a race that was lost."""
        attempts = sum(each.response.attempts - 1 for each in self.outcomes if each.response)
        return attempts - self.overloaded

    @property
    def overloaded(self) -> int:
        """Attempts that were refused because earlier orders waited too long; sent again as well."""
        return sum(each.response.overloaded for each in self.outcomes if each.response)

    @property
    def unanswered(self) -> int:
        return sum(each.response is None for each in self.outcomes)


def is_skipped(outcome: Outcome) -> bool:
    """A repeat of a refused request is not sent."""
    return isinstance(outcome.planned.action, Repeat) and outcome.alike is None


def group_by_kind(outcomes: Sequence[Outcome]) -> list[Kind]:
    kinds = [
        Kind(name=name, outcomes=[each for each in outcomes if is_kind(each, kind)])
        for kind, name in NAMES.items()
    ]
    return [*kinds, Kind(name="all", outcomes=outcomes)]


def is_kind(outcome: Outcome, kind: type) -> bool:
    return isinstance(outcome.planned.action, kind)


def percentile(values: Sequence[float], part: float) -> float:
    """NaN when there are no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else math.nan


def table(kinds: Sequence[Kind]) -> str:
    header = (
        *("request", "sent", "p50 ms", "p99 ms", "refused"),
        *("sent again", "overloaded", "no answer"),
    )
    rows = [
        (
            kind.name,
            str(len(kind.outcomes)),
            milliseconds(kind, 0.50),
            milliseconds(kind, 0.99),
            str(kind.refused),
            str(kind.sent_again),
            str(kind.overloaded),
            str(kind.unanswered),
        )
        for kind in kinds
    ]
    return progress.table(header, tuple(rows))


def milliseconds(kind: Kind, part: float) -> str:
    return f"{percentile(kind.milliseconds, part):.0f}" if kind.milliseconds else NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How well the schedule was kept; rates in actions a second, from the first due action."""

    planned: float
    begun: float
    answered: float
    begun_late: int
    count: int

    @property
    def was_kept(self) -> bool:
        """Whether this program and the system kept the rate."""
        in_time = self.begun_late <= (1 - KEPT_PART) * self.count
        return in_time and self.answered >= KEPT_UP_PART * self.planned

    @property
    def text(self) -> str:
        rates = (
            f"{self.planned:.0f} a second planned, {self.begun:.1f} begun, {self.answered:.1f}"
            " answered"
        )
        if self.was_kept:
            return f"the rate was kept: {rates}"
        late = f"{self.begun_late} of {self.count} actions begun more than {LATE_SECONDS} s late"
        return f"THE RATE WAS NOT KEPT: {rates}; {late}"


def measure_pace(outcomes: Sequence[Outcome]) -> Pace:
    """The rate that was planned is the mean one, where a burst is part of the plan."""
    due = max(each.planned.due_seconds for each in outcomes)
    begun = max(each.planned.due_seconds + each.begun_seconds for each in outcomes)
    answered = max(each.planned.due_seconds + each.answered_seconds for each in outcomes)
    return Pace(
        planned=compute_rate(len(outcomes), due),
        begun=compute_rate(len(outcomes), begun),
        answered=compute_rate(len(outcomes), answered),
        begun_late=sum(each.was_begun_late for each in outcomes),
        count=len(outcomes),
    )


def compute_rate(count: int, last_seconds: float) -> float:
    """The first one was due at 0."""
    return (count - 1) / last_seconds if last_seconds > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """What a burst left behind: its actions, and how long after its end the last one of them was
    answered."""

    count: int
    rate: float
    burst_seconds: float
    seconds: float

    @property
    def text(self) -> str:
        return (
            f"burst: {self.count} actions in {self.burst_seconds:.1f} s, {self.rate:.0f} a second;"
            f" the last one was answered {self.seconds:.1f} s after its end"
        )


def measure_drain(outcomes: Sequence[Outcome], burst: Burst) -> Drain:
    inside = [each for each in outcomes if burst.begins <= each.planned.due_seconds < burst.ends]
    last = max(each.planned.due_seconds + each.answered_seconds for each in inside)
    seconds = burst.ends - burst.begins
    return Drain(
        count=len(inside),
        rate=len(inside) / seconds,
        burst_seconds=seconds,
        seconds=max(0.0, last - burst.ends),
    )


def count_endings(ledger: Ledger) -> Counter[str]:
    """Orders by the status in which they ended."""
    return Counter(order.status for order in ledger.orders)


def count_repeats(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """How many were answered alike, and how many were sent."""
    sent = [each.alike for each in outcomes if each.alike is not None]
    return sum(sent), len(sent)


def create_burst_figures(drain: Drain) -> Iterator[Figure]:
    yield Figure(name="burst: rate planned", value=round(drain.rate, 2), unit="1/s")
    yield Figure(name="burst: sent", value=drain.count, unit="1")
    yield Figure(name="burst: end until answered", value=round(drain.seconds, 2), unit="s")


def create_figures(kinds: Sequence[Kind], pace: Pace) -> Iterator[Figure]:
    yield Figure(name="rate planned", value=round(pace.planned, 2), unit="1/s")
    for name, rate in {"rate begun": pace.begun, "rate answered": pace.answered}.items():
        ratio = round(rate / pace.planned, 3)
        yield Figure(
            name=name, value=round(rate, 2), unit="1/s", ratio=ratio, ratio_to="rate planned"
        )
    for kind in kinds:
        yield Figure(name=f"{kind.name}: sent", value=len(kind.outcomes), unit="1")
        yield Figure(name=f"{kind.name}: sent again", value=kind.sent_again, unit="1")
        yield Figure(name=f"{kind.name}: overloaded", value=kind.overloaded, unit="1")
        for part in (50, 99):
            if kind.milliseconds:
                value = round(percentile(kind.milliseconds, part / 100), 1)
                yield Figure(name=f"{kind.name}: p{part}", value=value, unit="ms")
