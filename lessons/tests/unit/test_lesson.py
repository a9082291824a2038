"""Rows are compared with what must come out: nothing that differs passes for equal."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import IO

import pytest

from analytics_spark.job.gateway import JavaEnded
from fetching.errors import Failure
from lessons import spark_engine
from lessons.__main__ import choose, main, read_words
from lessons.lesson import (
    Case,
    Record,
    Row,
    Step,
    collapse,
    find_differences,
    to_clock,
    to_instant,
)
from lessons.running import Outcome, Result

ROW = {"key": "Jack", "count": 2}
DROPPED = {"dropped": 1}


def make_case(*out: Sequence[Row], key: Sequence[str] = ("key",)) -> Case:
    steps = [Step(records=[Record(value="a")], out=rows) for rows in out]
    return Case(name="a case", function="count", shows="a count", key=key, steps=steps)


def make_outcome(rows: Sequence[Row]) -> Outcome:
    case = make_case([ROW])
    return Outcome(case=case, engine="spark", function="count", answers=[list(rows)])


def test_equal_rows_do_not_differ() -> None:
    case = make_case([ROW], [DROPPED])

    assert find_differences(case, "spark", [[{"key": "Jack", "count": 1}, ROW], [DROPPED]]) == []


@pytest.mark.parametrize(
    "answered",
    [
        [],
        [{"key": "Jack", "count": 1}],
        [{"key": "Lily", "count": 2}],
        [ROW, {"key": "Lily", "count": 2}],
        [{"key": "Jack", "count": "2"}],
        [ROW, DROPPED],
    ],
    ids=["nothing", "other number", "other key", "one more", "text", "one dropped"],
)
def test_other_rows_differ(answered: Sequence[Row]) -> None:
    case = make_case([ROW])

    assert find_differences(case, "faust", [list(answered)])


def test_without_a_key_each_row_counts() -> None:
    case = make_case([ROW], key=())

    assert find_differences(case, "spark", [[ROW, ROW]]) == ["step 1: 2 rows instead of 1"]


def test_dropped_records_are_added_up() -> None:
    assert collapse([DROPPED, ROW, {"dropped": 4}], ("key",)) == [{"dropped": 5}, ROW]


def test_an_engine_has_rows_of_its_own() -> None:
    step = Step(records=[Record(value="a")], out={"spark": [ROW], "faust": []})

    assert step.get_expected("spark") == [ROW]
    assert step.get_expected("faust") == []


def test_a_control_whose_rows_are_as_expected_is_a_problem() -> None:
    right, wrong = make_outcome([ROW]), make_outcome([])

    assert Result(cases=[right], controls=[wrong]).problems == []
    assert str(Result(cases=[right], controls=[wrong])) == "1 of 1 cases, 1 of 1 controls"
    assert Result(cases=[right], controls=[right]).problems == [
        "count must be wrong, and is as expected"
    ]
    assert str(Result(cases=[wrong])) == "0 of 1 cases"
    assert Result(cases=[wrong]).problems == [f"a case, step 1: missing {ROW}"]
    assert str(Result(cases=[wrong], controls=[right])) == "0 of 1 cases, 0 of 1 controls"


def test_a_row_without_the_columns_of_the_key_differs() -> None:
    answered: Row = {"name": ["Jack"], "count": 2}

    assert find_differences(make_case([ROW]), "spark", [[answered]])


@pytest.mark.parametrize("text", ["08:15:30", "08:15:30.5", "2016-11-12T00:00:00"])
def test_a_time_is_written_as_it_is_read(text: str) -> None:
    assert to_clock(to_instant(text)) == text


def test_a_time_of_another_zone_is_that_of_utc() -> None:
    instant = datetime(2016, 11, 11, 9, 0, tzinfo=timezone(timedelta(hours=1)))

    assert to_clock(instant) == "08:00:00"
    assert to_instant("08:00:00") == datetime(2016, 11, 11, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["windows"], "windows: write it as name=value"),
        (["on=spark"], "name=... is missing: the lessons are"),
        (["name=clouds"], "there is no lesson clouds: the lessons are"),
        (
            ["name=windows", "late=1"],
            "windows: nothing takes late; on=spark takes grace, on=faust takes grace",
        ),
        (
            ["name=windows", "on=flink"],
            "on=spark, on=faust, on=streams, on=experiment, or nothing for spark, faust, exper",
        ),
        (["name=windows", "on=experiment"], "windows has no experiment"),
        (["name=committing", "on=streams"], "committing has no streams"),
        (
            ["name=windows", "case=unaligned", "on=streams"],
            "windows has no streams for case=unaligned",
        ),
        (
            ["name=windows", "on=streams", "grace=0"],
            "windows: nothing takes grace; on=streams takes nothing",
        ),
        (
            ["name=question", "on=faust", "orders=5"],
            "question: nothing takes orders; on=faust takes nothing",
        ),
        (
            ["name=question", "orders=5", "grace=0"],
            "question: nothing takes grace and orders; on=spark takes grace",
        ),
        (["name=tables", "case=hopping"], "tables has no case=hopping; its cases: stream, table,"),
        (["name=tables", "case="], "tables has no case=; its cases: stream, table,"),
        (["name=tuning", "case=plain"], "tuning has no case=plain; its cases: none"),
        (
            ["name=question", "case=late", "on=experiment"],
            "a case has no experiment: write on=spark,",
        ),
        (["--learn", "name=clouds"], "there is no lesson clouds: the lessons are"),
        (["--learn", "on=faust"], "exercises have no parameter on"),
        (["name=windows", "grace=-1"], "grace=-1: a parameter of a lesson is a whole number"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_word_is_named(
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["lesson", *words])

    assert main() == 1
    assert message in capsys.readouterr().err


def test_a_spark_that_does_not_start_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(options: object, jars: object, configuration: object, output: IO[bytes]) -> None:
        output.write(b"a line of the start\nnot enough memory\n")
        raise JavaEnded("Java ended with status 1 before Spark had started")

    monkeypatch.setattr(spark_engine, "start_session", fail)

    with pytest.raises(Failure, match="Java ended") as raised, spark_engine.open_session():
        pass

    assert raised.value.details[-1] == "not enough memory"


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (["name=windows"], ["spark", "faust"]),
        (["name=windows", "on=spark", "grace=0"], ["spark"]),
        (["name=windows", "on=streams"], ["streams"]),
        (["name=windows", "on=streams", "case=end"], ["streams"]),
        (["name=question"], ["spark", "faust", "experiment"]),
        (["name=question", "orders=5"], ["experiment"]),
        (["name=question", "grace=0"], ["spark"]),
        (["name=question", "case=late"], ["spark", "faust"]),
        (["name=question", "case=late", "grace=0"], ["spark"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_words_choose_what_runs(words: list[str], chosen: list[str]) -> None:
    _, columns, options = choose(read_words([*words, "PYTHON=python3"]))

    assert columns == chosen
    assert all(value in (0, 5) for value in options.values())
