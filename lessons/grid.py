"""The grid of lessons and engines on the front page, with what each engine answered."""

from collections.abc import Mapping
from pathlib import Path

from lessons.exercises import FILE, Exercise
from lessons.lesson import COLUMNS, FOLDER, Column, Lesson, find_lessons
from lessons.report import TITLES

PAGE = FOLDER / "README.md"
TOP = ("lesson", *(TITLES[column] for column in COLUMNS), "exercise")
HEADER = f"| {' | '.join(TOP)} |\n{'| --- ' * len(TOP)}|\n"

Grid = Mapping[tuple[str, Column], str]
"""What a result says, of a lesson in an engine or by its experiment."""


def read_grid(page: Path = PAGE) -> Grid:
    """What the page says. Raises ValueError if it has no grid."""
    cells = [row.strip("|").split("|") for row in find_rows(page.read_text()).splitlines()]
    return {
        (lesson.partition("[")[2].partition("]")[0], column): cell.strip()
        for lesson, *results in cells
        for column, cell in zip(COLUMNS, results, strict=False)
    }


def write_grid(found: Grid, page: Path = PAGE) -> bool:
    """Put what was found into the page, and keep the rest of it. Whether this changed it."""
    text = page.read_text()
    known = {**read_grid(page), **found}
    rows = "".join(write_row(Lesson(name), known) for name in find_lessons())
    changed = text.replace(HEADER + find_rows(text), HEADER + rows)
    if changed == text:
        return False
    page.write_text(changed)
    return True


def write_row(lesson: Lesson, known: Grid) -> str:
    cells = [
        f"[{lesson.name}]({lesson.name}/README.md): {lesson.title}",
        *(known.get((lesson.name, column), "-") for column in COLUMNS),
        f"[{', '.join(Exercise(lesson).functions)}]({lesson.name}/{FILE})",
    ]
    return f"| {' | '.join(cells)} |\n"


def find_rows(text: str) -> str:
    """The rows below the header, up to the first line that is none."""
    _, header, below = text.partition(HEADER)
    if not header:
        raise ValueError(f"there is no table that begins with {HEADER.splitlines()[0]}")
    lines = below.splitlines(keepends=True)
    end = next((n for n, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return "".join(lines[:end])
