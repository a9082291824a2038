"""The outcome of each step as a row of the table, and as figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_stack import progress
from local_stack.figures import Figure
from verification.drill.traffic import Recovery

NOTHING = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`failed` is how many of the requests failed at their first try. `skipped` is why the step was
    not done, and `problems` is what else was wrong."""

    step: str
    is_planned: bool
    lost: int = 0
    twice: int = 0
    failed: int = 0
    requests: int = 0
    recovery: Recovery | None = None
    skipped: str = ""
    problems: Sequence[str] = ()

    @property
    def is_good(self) -> bool:
        """Whether nothing is lost or there twice, and no planned operation failed a request."""
        failed = self.failed if self.is_planned else 0
        return not (self.lost or self.twice or failed or self.problems)


def format_table(rows: Sequence[Row]) -> str:
    header = ("step", "lost", "twice", "failed", "requests", "s to decide", "s to count", "")
    return progress.table(header, [format_row(each) for each in rows])


def format_row(row: Row) -> tuple[str, ...]:
    if row.skipped:
        return (row.step, *[NOTHING] * 6, f"skipped: {row.skipped}")
    decided = counted = NOTHING
    if row.recovery:
        decided, counted = map(format_seconds, (row.recovery.decided, row.recovery.counted))
    numbers = (row.lost, row.twice, row.failed, row.requests)
    return (row.step, *map(str, numbers), decided, counted, "; ".join(row.problems))


def format_seconds(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{seconds:.1f}"


def as_figures(rows: Sequence[Row]) -> list[Figure]:
    """The figures of the steps that were done."""
    return [figure for row in rows if not row.skipped for figure in figures_of(row)]


def figures_of(row: Row) -> Iterator[Figure]:
    yield Figure(name=f"lost, {row.step}", value=row.lost, unit="1")
    yield Figure(name=f"twice, {row.step}", value=row.twice, unit="1")
    yield Figure(name=f"failed, {row.step}", value=row.failed, unit="requests")
    if row.recovery:
        for what, seconds in (("decide", row.recovery.decided), ("count", row.recovery.counted)):
            if seconds is None:
                continue
            yield Figure(name=f"seconds to {what}, {row.step}", value=round(seconds, 1), unit="s")
