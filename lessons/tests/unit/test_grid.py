"""The grid on the front page has a row for each lesson, and takes what was found."""

from pathlib import Path

import pytest

from lessons.grid import PAGE, find_rows, read_grid, write_grid
from lessons.lesson import COLUMNS, Lesson, find_lessons
from lessons.running import get_columns


@pytest.fixture
def page(tmp_path: Path) -> Path:
    page = tmp_path / "README.md"
    page.write_text(PAGE.read_text())
    return page


def test_the_page_has_each_lesson_with_all_its_results() -> None:
    grid = read_grid()

    assert list(grid) == [(name, column) for name in find_lessons() for column in COLUMNS]
    assert [place for place, cell in grid.items() if cell != "-"] == [
        (name, column) for name in find_lessons() for column in get_columns(Lesson(name))
    ]


def test_what_was_found_before_is_written_again_without_a_change(page: Path) -> None:
    assert not write_grid(read_grid(), page)
    assert page.read_text() == PAGE.read_text()


def test_what_is_new_is_written_and_the_rest_of_the_page_stays(page: Path) -> None:
    assert write_grid({("windows", "faust"): "8 of 9 cases"}, page)

    assert read_grid(page) == {**read_grid(), ("windows", "faust"): "8 of 9 cases"}
    before, after = PAGE.read_text(), page.read_text()
    assert after.replace(find_rows(after), "") == before.replace(find_rows(before), "")


def test_a_lesson_that_the_page_lacks_gets_a_row(page: Path) -> None:
    row = next(line for line in page.read_text().splitlines() if line.startswith("| [joins]"))
    page.write_text(page.read_text().replace(f"{row}\n", ""))

    write_grid({("joins", "spark"): "7 of 7 cases"}, page)

    assert read_grid(page)["joins", "spark"] == "7 of 7 cases"
    assert read_grid(page)["joins", "faust"] == "-"


def test_a_page_without_a_grid_is_refused(page: Path) -> None:
    page.write_text("# Lessons\n")

    with pytest.raises(ValueError, match="there is no table that begins with"):
        read_grid(page)
