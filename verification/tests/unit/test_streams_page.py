"""The page on Kafka Streams names each lesson, each vector and each system, and nothing else."""

import re
from pathlib import Path

import pytest

from lessons.experiment import find_experiments
from lessons.lesson import FOLDER, find_lessons
from scripts.parts.declared import load_parts

CHECKOUT = Path(__file__).parents[3]
PAGE = CHECKOUT / "docs/streams.md"
IDEAS, NUMBERS, SYSTEMS = 24, 36, 38
PARTS = 7
LESSONS = {*find_lessons(), *find_experiments()}

of_the_whole = pytest.mark.skipif(
    len(load_parts(CHECKOUT)) < PARTS, reason="rows of a part that was left out are gone"
)


def rows_of(section: str) -> list[list[str]]:
    """The cells of its table, without the two lines of the header."""
    _, _, text = PAGE.read_text().partition(f"\n## {section}\n")
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_lesson_is_on_the_page_and_each_named_one_exists() -> None:
    named = set(re.findall(r"make lesson name=(\w+)", PAGE.read_text()))

    assert named == LESSONS


@of_the_whole
@pytest.mark.parametrize(("section", "count"), [("Ideas", IDEAS), ("Systems", SYSTEMS)])
def test_each_row_can_be_tried_or_names_a_file(section: str, count: int) -> None:
    rows = rows_of(section)

    assert len(rows) == count
    without = [row[0] for row in rows if not re.search(r"`make |\]\(", " ".join(row[1:]))]
    assert without == ["12"] * ("12" in without)


@of_the_whole
def test_every_vector_has_a_row() -> None:
    assert [row[0] for row in rows_of("Numbers")] == [f"TV-{n}" for n in range(1, NUMBERS + 1)]


@pytest.mark.parametrize("row", rows_of("Numbers"), ids=lambda row: row[0])
def test_what_a_vector_is_shown_by_names_its_number(row: list[str]) -> None:
    """A lesson in its folder, or a test in its file."""
    number, _, shown = row
    files = [
        path
        for name in re.findall(r"make lesson name=(\w+)", shown)
        for path in (FOLDER / name).iterdir()
        if path.is_file()
    ]
    files += [(PAGE.parent / link).resolve() for link in re.findall(r"\]\(([^)]+)\)", shown)]
    pattern = re.compile(rf"\b(?:TV-|tv){number.removeprefix('TV-')}\b|_tv{number[3:]}_")

    assert any(pattern.search(path.read_text()) for path in files)
