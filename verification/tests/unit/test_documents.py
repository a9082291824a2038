"""Indexes in the documents are complete: a page that is missing or was renamed shows here."""

import ast
import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
DECISIONS = CHECKOUT / "docs/adr"
GLOSSARY = CHECKOUT / "docs/glossary.md"

RECORD = re.compile(
    r"# (?P<number>\d+)\. (?P<title>.+)\n\n"
    r"Status: (?P<status>accepted|superseded by \d{4}) · Date: (?P<date>\d{4}-\d\d-\d\d)"
    r" · Area: (?P<area>[A-Za-z ]+)\n"
)


def index_row(page: Path) -> str:
    """The row of the index that the heading of a decision record asks for."""
    record = RECORD.match(page.read_text())
    assert record, f"{page.name}: a title, then a line with status, date and area"
    number = f"{int(record['number']):04d}"
    title = record["title"]
    return (
        f"| [{number}]({page.name}) | {title} | {record['area']} | {record['status']}"
        f" | {record['date']} |"
    )


def file_name(page: Path) -> str:
    """The name that the number and the title of a decision record lead to."""
    record = RECORD.match(page.read_text())
    assert record, page.name
    words = re.sub(r"[^a-z0-9]+", "-", record["title"].lower().replace("'", "")).strip("-")
    return f"{int(record['number']):04d}-{words}.md"


def test_the_index_lists_every_decision_as_its_page_does() -> None:
    pages = sorted(DECISIONS.glob("0*.md"))

    rows = re.findall(r"^\| \[.+$", (DECISIONS / "README.md").read_text(), re.MULTILINE)

    assert rows == [index_row(page) for page in pages]


def test_a_decision_is_in_a_file_of_its_title() -> None:
    pages = sorted(DECISIONS.glob("0*.md"))

    assert [page.name for page in pages] == [file_name(page) for page in pages]


def defined_in(path: Path) -> set[str]:
    """The classes, functions and constants of a Python module, or the tables of a SQL file."""
    text = path.read_text()
    if path.suffix == ".sql":
        return set(re.findall(r"^CREATE TABLE (\w+)", text, re.MULTILINE))
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


TERMS = re.findall(r"^\| ([^|]+) \|.*\| ([^|]+) \|$", GLOSSARY.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("term", "where"), [(term, where) for term, where in TERMS if term not in ("term", "---")]
)
def test_a_term_of_the_glossary_is_defined_in_the_file_it_names(term: str, where: str) -> None:
    match = re.fullmatch(r"\[[\w.]+\]\(([^)]+)\)(?:: (`\w+`(?:, `\w+`)*))?", where)
    assert match, f"{term}: a link to a file, and names that the file defines"

    path = GLOSSARY.parent / match[1]

    assert path.is_file()
    assert set(re.findall(r"`(\w+)`", match[2] or "")) <= defined_in(path)


def test_the_readme_quotes_the_definition_of_the_answer() -> None:
    definition = CHECKOUT / "analytics-spark/src/analytics_spark/definition.sql"
    [excerpt] = re.findall(r"```sql\n(.+?)```", (CHECKOUT / "README.md").read_text(), re.DOTALL)

    steps = excerpt.strip().split("\n\n")

    assert len(steps) == 2
    assert [step for step in steps if step not in definition.read_text()] == []


def test_what_it_costs_is_as_in_the_last_figures() -> None:
    figures = re.findall(
        r"^\| ([^|]+) \| ([\d.,]+) \| [^|]*\| ([^|]+) \|",
        (CHECKOUT / "benchmarks/figures.md").read_text(),
        re.MULTILINE,
    )
    costs = re.findall(
        r"^\| [^|]+ \| ([\d.,]+) (\S+) \| ([^|[]+) \|$",
        (CHECKOUT / "docs/when-not-to-use.md").read_text(),
        re.MULTILINE,
    )

    assert len(costs) == 8
    assert {(name, value, unit) for value, unit, name in costs} <= set(figures)
