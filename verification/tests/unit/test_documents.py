"""Indexes in the documents are complete: a page that is missing or was renamed shows here."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
DECISIONS = CHECKOUT / "docs/adr"

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
