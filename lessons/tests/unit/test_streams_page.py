"""docs/streams.md names every lesson; what its rows say to run and to read is there."""

import re
from collections.abc import Sequence

import pytest

from fetching.errors import Failure
from lessons.__main__ import choose, read_words
from lessons.lesson import find_lessons
from local_stack.settings import CHECKOUT

PAGE = CHECKOUT / "docs/streams.md"
IDEAS = 26
COLUMNS = 6
WHERE, TRY = 3, 4
"""Places of the columns with what to read and with what to run."""
FILE = r"\[[\w.]+\]\(\.\./([\w/.-]+)\)"
NAME_IN_FILE = re.compile(rf"{FILE}: `(\w+)`")
COMMAND = r"`make ([\w-]+)((?: \S+=\S+)*)`"
TEST = r"\[(test_\w+)\]\(\.\./([\w/.-]+)\)"
STEP = re.compile(rf"(?:{COMMAND}|{TEST})(?: \([\w ]+\))?")
"""A command or a test, and what it shows in brackets."""


def read_rows() -> Sequence[Sequence[str]]:
    """The cells of each row of the table, without its header."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def find_problems(cell: str) -> Sequence[str]:
    """Why what a cell says cannot be run."""
    return [problem for step in cell.split(", ") if (problem := find_problem(step))]


def find_problem(step: str) -> str:
    """Why it cannot be run; empty if it can."""
    read = STEP.fullmatch(step)
    if read is None:
        return f"neither a command nor a test: {step}"
    verb, words, test, file = read.groups()
    if test:
        return "" if is_in(rf"def {test}\(", file) else f"there is no {test} in {file}"
    if not is_in(rf"(?m)^{verb}:", "Makefile"):
        return f"there is no make {verb}"
    return find_wrong_word(words.split()) if verb == "lesson" else ""


def find_wrong_word(words: Sequence[str]) -> str:
    """What `make lesson` would say of these words; empty if it runs."""
    try:
        choose(read_words(words))
    except Failure as failure:
        return str(failure)
    return ""


def is_in(pattern: str, file: str) -> bool:
    path = CHECKOUT / file
    return path.is_file() and re.search(pattern, path.read_text()) is not None


def test_every_lesson_is_on_the_page() -> None:
    named = re.findall(r"`make lesson name=(\w+)", PAGE.read_text())

    assert set(named) == set(find_lessons())


def test_what_each_row_says_can_be_run_and_read() -> None:
    rows = read_rows()

    assert len(rows) == IDEAS
    assert {len(row) for row in rows} == {COLUMNS}
    for row in rows:
        assert find_problems(row[TRY]) == []
        assert re.search(FILE, row[WHERE]) or row[WHERE].startswith("nowhere")
        for file, name in NAME_IN_FILE.findall(row[WHERE]):
            assert is_in(rf"\b{name}\b", file), f"there is no {name} in {file}"


@pytest.mark.parametrize(
    ("cell", "problems"),
    [
        ("`make lesson name=nodes`", ["there is no lesson nodes: the lessons are"]),
        ("`make lesson name=tables case=hopping`", ["tables has no case=hopping; its"]),
        ("`make lesson name=windows on=experiment`", ["windows has no experiment"]),
        ("`make lesson name=tuning moons=1`", ["tuning: nothing takes moons"]),
        ("`make lesson name=windows on=spark,faust`", ["there is no spark,faust: write on="]),
        ("`make reprocess`, `make nothing`", ["there is no make nothing"]),
        ("[test_no](../Makefile)", ["there is no test_no in Makefile"]),
        ("`make reprocess` by hand", ["neither a command nor a test"]),
        ("", ["neither a command nor a test"]),
    ],
    ids=lambda value: value.strip("`") if isinstance(value, str) else "",
)
def test_what_cannot_be_run_is_named(cell: str, problems: Sequence[str]) -> None:
    found = find_problems(cell)

    assert len(found) == len(problems)
    assert all(each.startswith(start) for each, start in zip(found, problems, strict=True))
