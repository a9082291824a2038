"""Each lesson answers as it says, and what it warns of leads to something else."""

from collections.abc import Iterator, Sequence

import pytest

from fetching.java_compiler import has_java_compiler
from lessons.grid import read_grid
from lessons.lab import Lab
from lessons.lesson import BY_DEFAULT, Column, Lesson, find_lessons
from lessons.running import get_columns, run_with_controls
from lessons.spark_engine import open_apart
from test_support.first_and_long import first_and_long

LONG = pytest.mark.verify(part="lessons")


@pytest.mark.parametrize("name", first_and_long(find_lessons(), LONG))
def test_a_lesson_leads_to_what_it_claims_and_the_grid_says(lab: Lab, name: str) -> None:
    check(lab, name, [each for each in get_columns(Lesson(name)) if each in BY_DEFAULT])


@pytest.mark.skipif(not has_java_compiler(), reason="no javac")
@pytest.mark.parametrize(
    "name",
    first_and_long(
        (each for each in find_lessons() if "streams" in get_columns(Lesson(each))), LONG
    ),
)
def test_a_lesson_leads_to_the_same_in_kafka_streams(lab: Lab, name: str) -> None:
    check(lab, name, ["streams"])


def check(lab: Lab, name: str, columns: Sequence[Column]) -> None:
    results = run_with_controls(lab, Lesson(name), columns)

    assert {column: result.problems for column, result in results.items() if result.problems} == {}
    assert all(result.controls for result in results.values())
    grid = read_grid()
    assert {each: str(results[each]) for each in columns} == {
        each: grid[name, each] for each in columns
    }


@pytest.fixture
def of_first(lab: Lab) -> Iterator[str]:
    """An option that is set in the first session of the Spark of the lab."""
    name = "spark.sql.streaming.of.first"
    first = lab.session.builder.config(name, "1").getOrCreate()
    assert first.conf.get(name) == "1"
    yield name
    first.conf.unset(name)


def test_a_session_has_no_options_of_another(lab: Lab, of_first: str) -> None:
    of_start = "spark.sql.streaming.stateStore.providerClass"

    apart = open_apart(lab.session, {"spark.sql.shuffle.partitions": "3"})

    assert lab.session.conf.get(of_first, None) is None
    assert apart.conf.get("spark.sql.shuffle.partitions") == "3"
    assert lab.session.conf.get("spark.sql.shuffle.partitions") == "2"
    assert "RocksDB" in str(lab.session.conf.get(of_start))
    assert "RocksDB" not in str(apart.conf.get(of_start))
