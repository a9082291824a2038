"""docs/comparison.md names the source of what it says, so that a reader can verify it."""

import re
from collections import defaultdict
from pathlib import Path

from benchmarks.command import BENCHMARKS

CHECKOUT = Path(__file__).parents[3]
PAGE = CHECKOUT / "docs/comparison.md"

ADDRESS = re.compile(r"\bhttps?://[^\s)>]+")
COMMIT = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:tree|blob)/([0-9a-f]{40})(?:/.+)?")
NUMBERED = re.compile(
    r"https://github\.com/[\w.-]+/[\w.-]+/pull/\d+"
    r"|https://cwiki\.apache\.org/confluence/display/KAFKA/KIP-\d+:[\w+-]+"
)
"""A change or a proposal, which has a number."""
SECTIONS = {
    "What to take for which aim": "take",
    "Other reference applications": "what is left",
    "Libraries for event sourcing, or an outbox": "better than here",
    "Engines": "the join",
}
"""The sections about other projects, each with a column of its first table."""
OURS = ("this one", "see the whole way", "Spark", "Faust")
"""How the rows about this repository begin: their sources are here."""
FIGURES = "Measured next to peers"


def find_sections(text: str) -> dict[str, str]:
    """Return the text of each section by its title, up to the colon."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {re.split(r"[:\n]", part, maxsplit=1)[0]: part for part in parts}


def find_rows(section: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the first table."""
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table, section
    lines = [line.strip("|").split("|") for line in table[0].splitlines()]
    header, _, *rows = [[cell.strip() for cell in line] for line in lines]
    return header, rows


def find_loose(text: str) -> set[str]:
    """Return the addresses that lead to something else tomorrow."""
    return {
        address
        for address in ADDRESS.findall(text)
        if not COMMIT.fullmatch(address) and not NUMBERED.fullmatch(address)
    }


def find_commits(text: str) -> dict[str, set[str]]:
    """Return the commits of each repository."""
    found = defaultdict(set)
    for repository, commit in COMMIT.findall(text):
        found[repository].add(commit)
    return found


def find_incomplete(section: str) -> list[str]:
    """Return the first cell of each row with an empty or missing cell."""
    header, rows = find_rows(section)
    return [row[0] for row in rows if len(row) != len(header) or not all(row)]


def find_unsourced(section: str) -> list[str]:
    """Return the first cell of each row about another project that has no address."""
    _, rows = find_rows(section)
    others = [row for row in rows if not row[0].startswith(OURS)]
    return [row[0] for row in others if not ADDRESS.search(" ".join(row))]


def test_what_is_said_of_a_project_is_of_one_commit() -> None:
    text = PAGE.read_text()
    commits = find_commits(text)

    assert find_loose(text) == set()
    assert {repository for repository, found in commits.items() if len(found) > 1} == set()
    assert len(commits) > len(SECTIONS)


def test_each_row_is_complete_and_has_a_source() -> None:
    sections = find_sections(PAGE.read_text())

    for title, column in SECTIONS.items():
        assert column in find_rows(sections[title])[0], title
        assert find_incomplete(sections[title]) == [], title
        assert find_unsourced(sections[title]) == [], title


def test_each_figure_is_of_a_part_that_measures_it() -> None:
    parts = {part.name for each in BENCHMARKS.values() for part in each.parts}
    section = find_sections(PAGE.read_text())[FIGURES]
    header, rows = find_rows(section)

    assert header[-2:] == ["the peer", "part"]
    assert rows
    assert {row[-1].strip("`") for row in rows} <= parts
    assert find_incomplete(section) == []


def test_what_cannot_be_verified_is_found() -> None:
    """The negative control."""
    commit = "https://github.com/a/b/tree/" + "0" * 40
    other = "https://github.com/a/b/blob/" + "1" * 40 + "/c.md"
    moving = "https://github.com/a/b/tree/main"
    rows = [
        ["x", f"[a]({commit})"],
        ["words", "no source"],
        ["our file", "[a](here.md)"],
        ["this one, empty", ""],
        ["this one, short"],
        ["this one", "[a](here.md)"],
    ]
    lines = [["what", "where"], ["---", "---"], *rows]
    section = "One: more\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)

    assert find_incomplete(section) == ["this one, empty", "this one, short"]
    assert find_unsourced(section) == ["words", "our file"]
    assert find_sections(f"# Page\n\n## {section}") == {"One": section}
    assert find_loose(f"[a]({commit}) <{moving}> [c]({other})") == {moving}
    assert find_commits(f"[a]({commit}) [c]({other})") == {"a/b": {"0" * 40, "1" * 40}}
