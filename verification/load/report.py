"""What a run did, as a short table and as figures."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_stack import progress
from local_stack.figures import Figure
from verification.load.actions import NAMES, Repeat
from verification.load.driver import LATE_SECONDS, Outcome
from verification.load.expected import Ledger

NOTHING = "-"
KEPT_PART = 0.99
"""So many actions must begin when they are due, else this program did not keep the rate."""
KEPT_UP_PART = 0.9
"""So much of the rate must be answered, else the system did not keep it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Outcomes of one kind of action, `all` for everything."""

    name: str
    outcomes: Sequence[Outcome]

    @property
    def milliseconds(self) -> list[float]:
        """From when each was due until it was answered; of those that were sent and answered."""
        return [
            1000 * each.answered_seconds
            for each in self.outcomes
            if each.answer is not None and not is_skipped(each)
        ]

    @property
    def refused(self) -> int:
        return sum(
            each.answer is not None and not each.answer.is_accepted and not is_skipped(each)
            for each in self.outcomes
        )

    @property
    def sent_again(self) -> int:
        return sum(each.answer.attempts - 1 for each in self.outcomes if each.answer)

    @property
    def unanswered(self) -> int:
        return sum(each.answer is None for each in self.outcomes)


def is_skipped(outcome: Outcome) -> bool:
    """A repeat of what was refused is not sent."""
    return isinstance(outcome.planned.action, Repeat) and outcome.alike is None


def kinds_of(outcomes: Sequence[Outcome]) -> list[Kind]:
    kinds = [
        Kind(name=name, outcomes=[each for each in outcomes if is_of(each, kind)])
        for kind, name in NAMES.items()
    ]
    return [*kinds, Kind(name="all", outcomes=outcomes)]


def is_of(outcome: Outcome, kind: type) -> bool:
    return isinstance(outcome.planned.action, kind)


def percentile(values: Sequence[float], part: float) -> float:
    """NaN when there are no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else math.nan


def table(kinds: Sequence[Kind]) -> str:
    header = ("request", "sent", "p50 ms", "p99 ms", "refused", "sent again", "no answer")
    rows = [
        (
            kind.name,
            str(len(kind.outcomes)),
            milliseconds(kind, 0.50),
            milliseconds(kind, 0.99),
            str(kind.refused),
            str(kind.sent_again),
            str(kind.unanswered),
        )
        for kind in kinds
    ]
    return progress.table(header, tuple(rows))


def milliseconds(kind: Kind, part: float) -> str:
    return f"{percentile(kind.milliseconds, part):.0f}" if kind.milliseconds else NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How well the clock was kept; rates in actions a second, from the first one that was due."""

    planned: float
    begun: float
    answered: float
    begun_late: int
    count: int

    @property
    def was_kept(self) -> bool:
        """By this program, and by the system."""
        in_time = self.begun_late <= (1 - KEPT_PART) * self.count
        return in_time and self.answered >= KEPT_UP_PART * self.planned

    @property
    def words(self) -> str:
        rates = (
            f"{self.planned:.0f} a second planned, {self.begun:.1f} begun, {self.answered:.1f}"
            " answered"
        )
        if self.was_kept:
            return f"the rate was kept: {rates}"
        late = f"{self.begun_late} of {self.count} actions begun more than {LATE_SECONDS} s late"
        return f"THE RATE WAS NOT KEPT: {rates}; {late}"


def pace_of(outcomes: Sequence[Outcome], rate: int) -> Pace:
    begun = max(each.planned.due_seconds + each.begun_seconds for each in outcomes)
    answered = max(each.planned.due_seconds + each.answered_seconds for each in outcomes)
    return Pace(
        planned=rate,
        begun=rate_of(len(outcomes), begun),
        answered=rate_of(len(outcomes), answered),
        begun_late=sum(each.was_begun_late for each in outcomes),
        count=len(outcomes),
    )


def rate_of(count: int, last_seconds: float) -> float:
    """The first one was due at 0."""
    return (count - 1) / last_seconds if last_seconds > 0 else 0.0


def endings(ledger: Ledger) -> Counter[str]:
    """Orders by the status in which they ended."""
    return Counter(order.status for order in ledger.orders)


def repeats(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """How many were answered alike, and how many were sent."""
    sent = [each.alike for each in outcomes if each.alike is not None]
    return sum(sent), len(sent)


def figures_of(kinds: Sequence[Kind], pace: Pace) -> Iterator[Figure]:
    yield Figure(name="rate planned", value=pace.planned, unit="1/s")
    for name, rate in {"rate begun": pace.begun, "rate answered": pace.answered}.items():
        ratio = round(rate / pace.planned, 3)
        yield Figure(
            name=name, value=round(rate, 2), unit="1/s", ratio=ratio, ratio_to="rate planned"
        )
    for kind in kinds:
        yield Figure(name=f"{kind.name}: sent", value=len(kind.outcomes), unit="1")
        yield Figure(name=f"{kind.name}: sent again", value=kind.sent_again, unit="1")
        for part in (50, 99):
            if kind.milliseconds:
                value = round(percentile(kind.milliseconds, part / 100), 1)
                yield Figure(name=f"{kind.name}: p{part}", value=value, unit="ms")
