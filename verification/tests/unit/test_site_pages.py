"""What becomes a page of the site, where its links lead, and which section it is in."""

from pathlib import Path

import pytest

from scripts.documentation.pages import Navigation, collect

ADDRESS = "https://example.org/shop/"
NAVIGATION: Navigation = [
    {"Start": "README.md"},
    {"Guides": ["docs/first.md", "docs/*.md"]},
    {"Lessons": ["lessons/README.md", "docs/streams.md", "lessons/*/README.md"]},
    {"Reference": ["reference/*.md", {"Folders": "*/README.md"}]},
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for path in (
        *("README.md", "docs/first.md", "docs/other.md", "shop/README.md", "shop/code.py"),
        *("docs/images/a.png", ".hidden/README.md"),
    ):
        write(tmp_path / path)
    return tmp_path


def write(path: Path, text: str = "# A title\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_navigation_has_every_document_once(checkout: Path) -> None:
    site = collect(checkout, NAVIGATION, {"reference/verbs.md": "# Verbs"}, ADDRESS)

    assert site.navigation == [
        {"Start": "README.md"},
        {"Guides": ["docs/first.md", "docs/other.md"]},
        {"Reference": ["reference/verbs.md", {"Folders": "shop/README.md"}]},
    ]
    assert site.texts["reference/verbs.md"] == "# Verbs"
    assert ".hidden/README.md" not in site.texts


def test_lessons_are_a_section_once_there_are_some(checkout: Path) -> None:
    for path in ("lessons/README.md", "docs/streams.md", "lessons/joins/README.md"):
        write(checkout / path)

    site = collect(checkout, NAVIGATION, {}, ADDRESS)

    assert site.navigation[2] == {
        "Lessons": ["lessons/README.md", "docs/streams.md", "lessons/joins/README.md"]
    }
    assert site.navigation[1] == {"Guides": ["docs/first.md", "docs/other.md"]}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[a](other.md)", "[a](other.md)"),
        ("[a](other.md#part)", "[a](other.md#part)"),
        ("[a](../README.md)", "[a](../README.md)"),
        ("[a](#part)", "[a](#part)"),
        ("[a](https://kafka.apache.org)", "[a](https://kafka.apache.org)"),
        ("[a](../shop)", "[a](../shop/README.md)"),
        ("[a](../shop/code.py)", f"[a]({ADDRESS}shop/code.py)"),
        ("[a](../shop/code.py#L3)", f"[a]({ADDRESS}shop/code.py#L3)"),
        ("[a](images)", f"[a]({ADDRESS}docs/images)"),
        ("![a](images/a.png)", "![a](images/a.png)"),
        ("[a](no-such-file.py)", "[a](no-such-file.py)"),
        ("`[a](../shop/code.py)`", "`[a](../shop/code.py)`"),
        ("```md\n[a](../shop/code.py)\n```", "```md\n[a](../shop/code.py)\n```"),
        ("`a` [b](../shop/code.py) `c`", f"`a` [b]({ADDRESS}shop/code.py) `c`"),
    ],
)
def test_a_link_leads_to_a_page_or_to_the_repository(
    checkout: Path, written: str, read: str
) -> None:
    write(checkout / "docs/first.md", f"# Title\n\n{written}\n")

    site = collect(checkout, NAVIGATION, {}, ADDRESS)

    assert site.texts["docs/first.md"] == f"# Title\n\n{read}\n"
    assert site.images == ({"docs/images/a.png"} if written.startswith("!") else set())
