"""`make test` shows every guarantee: each row of docs/guarantees.md has a test that it runs."""

import re
import subprocess
import sys

import pytest

from local_stack.settings import CHECKOUT

GUARANTEES = CHECKOUT / "docs/guarantees.md"

LONGER = "## What only longer runs show"
"""The section of guarantees that no test of `make test` shows."""
ROW = re.compile(r"^\| (?!from →|---)(?P<words>[^|]+\|[^|]+)\|(?P<shown_by>[^|]+)\|$", re.MULTILINE)
TEST_FILE = re.compile(r"`([\w./-]+/test_\w+\.py)`")


def rows(text: str) -> list[tuple[str, set[str]]]:
    """The words of each row, and the files of its tests."""
    return [
        (row["words"].strip(), set(TEST_FILE.findall(row["shown_by"])))
        for row in ROW.finditer(text)
    ]


@pytest.fixture(scope="module")
def in_test() -> set[str]:
    """The files with tests that `make test` runs; those for containers only are not collected."""
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not verify"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return {line.partition("::")[0] for line in ended.stdout.splitlines() if "::" in line}


def test_each_row_has_a_test_that_make_test_runs(in_test: set[str]) -> None:
    shown, _, _ = GUARANTEES.read_text().partition(LONGER)

    assert [words for words, files in rows(shown) if not files & in_test] == []
    assert len(rows(shown)) > 40


def test_what_only_longer_runs_show_is_listed_apart(in_test: set[str]) -> None:
    """The counterpart: there a row without such a test is found."""
    _, _, longer = GUARANTEES.read_text().partition(LONGER)

    assert rows(longer)
    assert [words for words, files in rows(longer) if files & in_test] == []
