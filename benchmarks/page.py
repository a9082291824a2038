"""The last figures as a page: by part, with the machine and the day on which they were measured."""

import os
import platform
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks.series import Series, format_number, format_range
from local_stack import progress

PAGE = Path(__file__).with_name("figures.md")
TITLE = """# The last figures

Written by `python -m benchmarks --record`; only sections of parts that were measured are replaced.
[The card](README.md) says what the parts measure, and how to read their figures. A ratio is the
median of those of single rounds.
"""
COLUMNS = ("figure", "median", "range", "unit", "ratio", "compared with", "goal", "")
NAME, MEDIAN, _, UNIT, RATIO, _, GOAL, VERDICT = range(8)
GIBIBYTE = 1 << 30
MODEL = re.compile(r"^model name\s*: (.*?)\s*$", re.MULTILINE)

Row = tuple[str, ...]
"""One cell for each of COLUMNS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The figures of a part; `measured` says when, where, and how much."""

    measured: str
    rows: Sequence[Row]

    @property
    def judged(self) -> Sequence[Row]:
        """The rows of figures that have a goal."""
        return [row for row in self.rows if row[GOAL]]


def create_section(measured: Sequence[Series], size: str, load: float) -> Section:
    day = datetime.now(UTC).date()
    return Section(
        measured=f"{day}, {describe_machine()}, {size}, load average before {load:.2f}",
        rows=[create_row(each) for each in measured],
    )


def describe_machine() -> str:
    cores, memory = os.cpu_count(), psutil.virtual_memory().total / GIBIBYTE
    return f"{cores} cores of {find_model()}, {memory:.0f} GiB, {platform.system()}"


def find_model() -> str:
    """The processor's name, or its architecture where that is not known."""
    information = Path("/proc/cpuinfo")
    found = MODEL.search(information.read_text()) if information.exists() else None
    return found[1] if found else platform.machine()


def create_row(each: Series) -> Row:
    return (
        each.name,
        format_number(each.value),
        format_range(each.rounds),
        each.unit,
        "" if each.ratio is None else f"{each.ratio:.2f}",
        each.limit.name if each.limit else "",
        str(each.goal or ""),
        str(each.verdict or ""),
    )


def format_screen(sections: Mapping[str, Section], now: Collection[str]) -> str:
    """All figures with a goal, in one table; the day is that of those not measured `now`."""
    header = ("part", "figure", "median", "unit", "ratio", "goal", "", "of")
    rows = [
        (
            part.partition(": ")[2] if number == 0 else "",
            *(row[column] for column in (NAME, MEDIAN, UNIT, RATIO, GOAL, VERDICT)),
            "now" if part in now else section.measured.partition(",")[0],
        )
        for part, section in sections.items()
        for number, row in enumerate(section.judged)
    ]
    return progress.table(header, rows)


def format_page(sections: Mapping[str, Section]) -> str:
    return "\n".join([TITLE, *(format_section(part, each) for part, each in sections.items())])


def format_section(part: str, section: Section) -> str:
    lines = [format_line(row) for row in (COLUMNS, ("---",) * len(COLUMNS), *section.rows)]
    return f"## {part}\n\n{section.measured}\n\n" + "\n".join(lines) + "\n"


def format_line(row: Row) -> str:
    return f"| {' | '.join(row)} |".replace("  ", " ")


def parse_page(text: str) -> dict[str, Section]:
    """The sections by part. Raises ValueError when the page is not as `format_page` writes it."""
    title, *parts = text.split("\n## ")
    if title.strip() != TITLE.strip():
        raise ValueError("the page has another introduction")
    return dict(parse_section(part) for part in parts)


def parse_section(text: str) -> tuple[str, Section]:
    part, _, measured, _, header, _, *lines = text.rstrip("\n").split("\n")
    if parse_line(header) != COLUMNS:
        raise ValueError(f"{part}: other columns")
    return part, Section(measured=measured, rows=[parse_line(line) for line in lines])


def parse_line(line: str) -> Row:
    _, *cells, _ = line.split("|")
    row = tuple(cell.strip() for cell in cells)
    if len(row) != len(COLUMNS):
        raise ValueError(f"not {len(COLUMNS)} cells: {line}")
    return row


def read_page(path: Path) -> dict[str, Section]:
    """The sections by part; none when there is no page."""
    return parse_page(path.read_text()) if path.exists() else {}


def record(path: Path, measured: Mapping[str, Section], order: Sequence[str]) -> None:
    """Replace the sections of what was measured; `order` is that of all parts."""
    sections = {**read_page(path), **measured}
    path.write_text(format_page({part: sections[part] for part in order if part in sections}))
