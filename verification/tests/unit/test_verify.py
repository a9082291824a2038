"""`make verify` runs every part, goes on after one that fails, and ends with a table."""

import re
import sys
from pathlib import Path

import pytest

from local_stack.settings import CHECKOUT
from scripts.changes import list_tracked
from verification import __main__ as verify
from verification.__main__ import CAMPAIGNS, CONTAINERS, PARTS, Result

TEST_FILE = re.compile(r"(^|/)test_\w+\.py$")
MARK = re.compile(r'mark\.verify\(part="([^"]+)"\)')


def marked_parts() -> set[str]:
    return {
        part
        for name in list_tracked(CHECKOUT)
        if TEST_FILE.search(name)
        for part in MARK.findall((CHECKOUT / name).read_text())
    }


def test_every_mark_names_a_part_and_every_part_has_tests_or_a_campaign() -> None:
    assert marked_parts() <= {*PARTS}
    assert {*PARTS} - {*CAMPAIGNS, CONTAINERS} <= marked_parts()


def test_a_part_that_fails_stops_no_other_and_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(part: str) -> Result:
        return Result(part=part, passed=2, failed=int(part == "saga"), seconds=3)

    monkeypatch.setattr(verify, "run", run)
    monkeypatch.setattr(sys, "argv", ["verification", "--only", "saga,fuzz"])

    assert verify.main() == 1

    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()]
    assert ["saga", "2", "1", "3"] in rows
    assert ["fuzz", "2", "0", "3"] in rows
    assert printed.splitlines()[-1] == "failed, in 6 s"


def test_a_part_without_an_engine_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify, "has_engine", lambda: False)
    monkeypatch.setattr(sys, "argv", ["verification", "--only", CONTAINERS])

    assert verify.main() == 0

    assert "skipped: no Docker engine responds" in capsys.readouterr().out


def test_an_unknown_part_is_refused_and_the_parts_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["verification", "--only", "everything"])

    with pytest.raises(SystemExit):
        verify.main()

    assert "no part 'everything'; parts are stress" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ('tests="5" failures="1" errors="1" skipped="1"', (2, 2)),
        ('tests="3" failures="0" errors="0" skipped="0"', (3, 0)),
    ],
)
def test_the_counts_are_those_that_pytest_writes(
    tmp_path: Path, counts: str, expected: tuple[int, int]
) -> None:
    written = tmp_path / "tests.xml"
    written.write_text(f"<testsuites><testsuite {counts}></testsuite></testsuites>")

    assert verify.read_counts(written) == expected
