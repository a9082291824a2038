"""The page of the last figures can be read again, and is about parts that exist."""

import re
from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.command import BENCHMARKS, name_section, select_parts
from benchmarks.goals import ratio_at_least
from benchmarks.page import COLUMNS, Section
from benchmarks.series import Series

LIMIT = Series(name="bare", unit="1/s", rounds=(20.0, 40.0))
OURS = Series(name="ours", unit="1/s", rounds=(10.0, 20.0), limit=LIMIT, goal=ratio_at_least(0.5))
NUMBER = re.compile(r"[0-9,]+(\.[0-9]+)?(e[-+][0-9]+)?")


def test_a_page_is_read_as_it_was_written() -> None:
    section = page.create_section([LIMIT, OURS], "quick", 0.5)
    sections = {"delivery: append": section, "delivery: drain": section}

    assert page.parse_page(page.format_page(sections)) == sections
    assert section.rows[1] == (
        *("ours", "15", "10 to 20", "1/s", "0.50", "bare"),
        *("at least 0.5 of it", "met"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "# Another page\n",
        page.TITLE + "\n## drain\n\ntoday\n\n| figure |\n| --- |\n| rows |\n",
        page.format_page({"drain": Section(measured="today", rows=[("rows",) * 7])}),
    ],
)
def test_a_malformed_page_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"introduction|columns|cells"):
        page.parse_page(text)


def test_only_what_was_measured_is_replaced(tmp_path: Path) -> None:
    path, order = tmp_path / "figures.md", ["first", "second", "third"]
    old, new = (page.create_section([each], "full", 0) for each in (LIMIT, OURS))
    page.record(path, {"third": old, "first": old}, order)
    page.record(path, {"second": new, "first": new}, order)

    assert page.read_page(path) == {"first": new, "second": new, "third": old}
    assert list(page.read_page(path)) == order


def test_the_page_of_the_checkout_is_well_formed() -> None:
    sections = page.read_page(page.PAGE)
    known = [name_section(each, part) for each in BENCHMARKS.values() for part in each.parts]

    assert sections, "no figures are recorded"
    assert [name for name in known if name in sections] == list(sections)
    for name, section in sections.items():
        assert re.match(r"\d{4}-\d\d-\d\d, \d+ cores of .+, (full|quick), ", section.measured), name
        names = [row[0] for row in section.rows]
        assert len({*names}) == len(names), name
        for row in section.rows:
            assert NUMBER.fullmatch(row[1]), row
            assert not row[5] or row[5] in names, "it is compared with a figure of the same part"
            assert bool(row[COLUMNS.index("goal")]) == bool(row[-1]), "a goal is judged"


def test_the_command_on_the_page_about_scaling_measures_parts_that_exist() -> None:
    scaling = (page.PAGE.parents[1] / "docs" / "scaling.md").read_text()
    names = re.findall(r"--only (\w+)", scaling)

    (delivery,) = select_parts([BENCHMARKS["delivery"]], names)
    assert [part.name for part in delivery.parts] == names == ["whole", "scaling"]
