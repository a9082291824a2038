"""What a record costs, by the figures of this machine or by the recorded ones."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from benchmarks import page
from benchmarks.page import MEDIAN, NAME, UNIT
from benchmarks.series import format_number
from local_stack.settings import Way, usual_run_dir

MICROSECONDS: Mapping[str, float] = {"µs": 1, "ms": 1_000, "s": 1_000_000}
"""Of one unit."""
PER_MILLION_ROWS = 1e-6
CORES = re.compile(r"\b(\d+) cores of ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A figure as it was measured; `cores` are those of its machine."""

    value: float
    unit: str
    day: str
    is_recorded: bool
    cores: int

    @property
    def source(self) -> str:
        return f"{'recorded' if self.is_recorded else 'measured here'} {self.day}"


Figures = Mapping[str, Measured]
"""By name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """CPU time of one record, and the figure that it follows from."""

    microseconds: float
    figure: str
    measured: Measured

    @property
    def reason(self) -> str:
        value = f"{format_number(self.measured.value)} {self.measured.unit}"
        return f"{self.figure}: {value} ({self.measured.source})"


class NotMeasured(Exception):
    """A figure that a plan follows from is neither recorded nor measured here."""


def read_recorded(path: Path = page.PAGE) -> Figures:
    """The figures of the page."""
    found: dict[str, Measured] = {}
    for section in page.read_page(path).values():
        cores = CORES.search(section.measured)
        for row in section.rows:
            found[row[NAME]] = Measured(
                value=float(row[MEDIAN].replace(",", "")),
                unit=row[UNIT],
                day=section.measured.partition(",")[0],
                is_recorded=True,
                cores=int(cores[1]) if cores else 1,
            )
    return found


def read_measured(folders: Iterable[Path]) -> Figures:
    """The figures that the benchmarks have left in these run folders; the newest of each name."""
    files = [file for folder in folders for file in (folder / "bench").glob("*.json")]
    found: dict[str, Measured] = {}
    for file in sorted(files, key=lambda each: each.stat().st_mtime):
        day = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
        for figure in json.loads(file.read_text()):
            found[figure["name"]] = Measured(
                value=figure["value"],
                unit=figure["unit"],
                day=str(day),
                is_recorded=False,
                cores=os.cpu_count() or 1,
            )
    return found


def list_run_folders(run_dir: Path) -> Sequence[Path]:
    """A run folder that was chosen, or those of all ways in which the stack runs."""
    usual = [usual_run_dir(way) for way in get_args(Way)]
    return usual if run_dir in usual else [run_dir]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCosts:
    """What each step costs for one record.

    A broker is not measured alone: the machine that was full with a bare client and its broker is
    an upper bound for both.
    """

    accept: Cost
    accept_in_postgres: Cost
    publish: Cost
    write: Cost
    read: Cost
    decide: Cost
    decide_in_postgres: Cost
    count: Cost


# As the benchmarks name them; those are not imported, as they import all that they measure.
ACCEPT = "orders placed by orders-api, 1 process, own CPU of one"
ACCEPT_IN_POSTGRES = "orders placed by orders-api, 1 process, postgres CPU of one"
PUBLISH = "relay, CPU time per million rows"
WRITE = "bare send_batch, headers packed beforehand"
READ = "bare getmany loop"
DECIDE = "orders decided on by users-worker, 1 process, own CPU of one"
DECIDE_IN_POSTGRES = "orders decided on by users-worker, 1 process, postgres CPU of one"
COUNT = "job: CPU per order, without the first two batches"
COUNT_IN_SMALL_BATCHES = "CPU of analytics-job, per order at 300 orders per second"
"""Where the job was not measured alone: many times as much as in full batches."""


def derive_costs(figures: Figures) -> RecordCosts:
    """Raises NotMeasured."""
    return RecordCosts(
        accept=get_cpu(figures, ACCEPT),
        accept_in_postgres=get_cpu(figures, ACCEPT_IN_POSTGRES),
        publish=get_cpu(figures, PUBLISH, times=PER_MILLION_ROWS),
        write=get_bound(figures, WRITE),
        read=get_bound(figures, READ),
        decide=get_cpu(figures, DECIDE),
        decide_in_postgres=get_cpu(figures, DECIDE_IN_POSTGRES),
        count=get_cpu(figures, COUNT if COUNT in figures else COUNT_IN_SMALL_BATCHES),
    )


def get_cpu(figures: Figures, name: str, times: float = 1) -> Cost:
    """Of a figure that is a CPU time."""
    measured = get_measured(figures, name)
    microseconds = measured.value * MICROSECONDS[measured.unit] * times
    return Cost(microseconds=microseconds, figure=name, measured=measured)


def get_bound(figures: Figures, name: str) -> Cost:
    """Of a figure that is a rate at which all cores of the machine were used."""
    measured = get_measured(figures, name)
    microseconds = measured.cores / measured.value * MICROSECONDS["s"]
    return Cost(microseconds=microseconds, figure=name, measured=measured)


def get_measured(figures: Figures, name: str) -> Measured:
    if name not in figures:
        raise NotMeasured(f"there is no figure {name!r}: make bench measures it")
    return figures[name]
