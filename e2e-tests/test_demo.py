"""The demonstration: one command, the right numbers, also repeated and after a crash."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.runtime import log_lines
from test_support.system.clients import Hometown
from test_support.system.sample import load
from test_support.system.stack import Stack

HOUR_LINE = "hour 2016-11-11T00:00:00Z"
TABLE = {
    "BJ": ["1", "1", "3", "16166.64"],
    "SH": ["1", "1", "3", "14666.64"],
    "SZ": ["1", "1", "3", "8006.64"],
    "GZ": ["1", "1", "3", "5666.64"],
    "all": ["4", "4", "12", "44506.56"],
}


def table_of(printed: str) -> dict[str, list[str]]:
    """The rows of the hour's table by their first word."""
    words = [line.split() for line in printed.splitlines()]
    return {row[0]: row[1:] for row in words if row and row[0] in TABLE}


@pytest.mark.smoke
def test_the_demonstration_shows_the_expected_hour(first_demo: str) -> None:
    """Vector V1."""
    assert HOUR_LINE in first_demo
    assert table_of(first_demo) == TABLE
    assert "confirmed, 16166.64" in first_demo
    assert "make down" in first_demo


def test_the_demonstration_leaves_its_figures(stack: Stack) -> None:
    figures = json.loads((stack.folder / "bench" / "demo.json").read_text())

    assert [figure["name"] for figure in figures] == ["sample loaded", "sample counted"]
    assert all(set(each) == {"name", "value", "unit", "ratio", "ratio_to"} for each in figures)


def test_loading_the_sample_again_changes_nothing(stack: Stack, hometown: Hometown) -> None:
    """Vector V2."""
    load(hometown)

    assert table_of(stack.make_output("demo")) == TABLE


def test_a_second_start_is_harmless(stack: Stack) -> None:
    before = stack.lives()

    stack.make_output("up")

    assert stack.lives() == before


def test_the_footprint_is_written_as_figures(stack: Stack) -> None:
    printed = stack.make_output("footprint")

    figures = json.loads((stack.folder / "bench" / "footprint.json").read_text())
    assert "analytics-job" in printed
    assert all(figure["unit"] for figure in figures)


def test_the_logs_of_one_process_are_shown(stack: Stack) -> None:
    lines = stack.make_output("logs", "name=users-api").splitlines()

    assert all(log_lines.parse(line) for line in lines[1:]), "the first one can be cut"
    assert len(lines) > 1


def test_fetched_files_exist(stack: Stack) -> None:
    places = [Path(line.rpartition(" in ")[2]) for line in stack.make_output("fetch").splitlines()]

    assert len(places) == 5
    assert [place for place in places if not place.exists()] == []


def kill_everything(stack: Stack) -> None:
    stack.kill_everything()


def stop_everything(stack: Stack) -> None:
    stack.make_output("down")
    assert not stack.lives()


@pytest.mark.verify(part="end-to-end")
@pytest.mark.parametrize("end", [stop_everything, kill_everything])
def test_the_numbers_survive_any_end_of_all_processes(
    stack: Stack, end: Callable[[Stack], None]
) -> None:
    stack.make_output("up")
    stack.make_output("status")

    end(stack)
    assert stack.make("status").returncode != 0

    assert table_of(stack.make_output("demo")) == TABLE
