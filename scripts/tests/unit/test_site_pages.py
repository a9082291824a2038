"""What becomes a page of the site, in which section, and where its links lead."""

from pathlib import Path

import pytest

from scripts.changes import ChangeError
from scripts.documentation.pages import Checkout, Navigation, resolve

SOURCE = "https://example.org/shop/"
NAVIGATION: Navigation = [
    {"Start": "README.md"},
    {"Guides": ["docs/first.md", "docs/*.md"]},
    {"Lessons": ["lessons/README.md", "lessons/*/README.md"]},
    {"Folders": ["*/README.md", "*/*/README.md"]},
]
FILES = (
    *("README.md", "docs/.meta.yml", "docs/.drafts/a.md", "docs/first.md", "docs/other.md"),
    *("docs/images/a.png", "docs/images/b c.jpg", "docs/with space.py"),
    *("shop/A.md", "shop/README.md", "shop/code.py", "shop/room/README.md", ".github/form.md"),
)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    for path in FILES:
        write(tmp_path / path)
    return Checkout(tmp_path, FILES, SOURCE.rstrip("/"))


def write(path: Path, text: str = "# A title\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_each_document_is_a_page_but_those_in_folders_with_a_dot(checkout: Checkout) -> None:
    assert checkout.pages == [
        *("README.md", "docs/first.md", "docs/other.md"),
        *("shop/README.md", "shop/A.md", "shop/room/README.md"),
    ]
    assert checkout.about_pages == ["docs/.meta.yml"]


def test_a_generated_text_is_a_page_of_which_there_is_no_file(tmp_path: Path) -> None:
    write(tmp_path / "docs/first.md", "[a](../made/page.md)")
    generated = {"made/page.md": "[b](../docs/first.md) [c](../docs)", "made/.meta.yml": "about"}
    checkout = Checkout(tmp_path, ["docs/first.md"], SOURCE, generated)

    assert checkout.pages == ["docs/first.md", "made/page.md"]
    assert checkout.about_pages == ["made/.meta.yml"]
    assert checkout.read_text("made/.meta.yml") == "about"
    assert checkout.read_page("docs/first.md").text == "[a](../made/page.md)"
    assert checkout.read_page("made/page.md").text == f"[b](../docs/first.md) [c]({SOURCE}docs)"


def test_a_pattern_stands_for_what_is_named_nowhere(checkout: Checkout) -> None:
    assert resolve(NAVIGATION, checkout.pages)[1] == {"Guides": ["docs/first.md", "docs/other.md"]}
    assert resolve(["docs/*.md", "docs/other.md"], checkout.pages) == [
        *("docs/first.md", "docs/other.md")
    ]


def test_a_page_is_matched_by_the_first_pattern_only() -> None:
    navigation: Navigation = [{"One": ["a/*.md"]}, {"Two": ["a/b*.md", "*/c.md"]}]

    assert resolve(navigation, ["a/b.md", "d/c.md"]) == [{"One": ["a/b.md"]}, {"Two": ["d/c.md"]}]


def test_a_star_stays_within_one_folder(checkout: Checkout) -> None:
    assert resolve(["*/README.md"], checkout.pages) == ["shop/README.md"]


def test_two_stars_are_all_that_is_left(checkout: Checkout) -> None:
    assert resolve(["README.md", "docs/*.md", {"More": ["**"]}], checkout.pages) == [
        *("README.md", "docs/first.md", "docs/other.md"),
        {"More": ["shop/README.md", "shop/A.md", "shop/room/README.md"]},
    ]


def test_a_section_is_left_out_where_it_has_no_pages(checkout: Checkout) -> None:
    assert resolve([{"Talks": ["talks/*.md"]}, {"In": [{"Deep": ["talks/*.md"]}]}], []) == []
    assert resolve([{"Talks": ["talks/*.md"]}], ["talks/one.md"]) == [{"Talks": ["talks/one.md"]}]


def test_a_page_that_is_named_and_missing_is_left_to_the_generator() -> None:
    """Which refuses it."""
    assert resolve([{"Guides": ["docs/gone.md"]}, {"One": "one.md"}], []) == [
        {"Guides": ["docs/gone.md"]},
        {"One": "one.md"},
    ]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[a](other.md)", "[a](other.md)"),
        ("[a](other.md#part)", "[a](other.md#part)"),
        ("[a](../README.md)", "[a](../README.md)"),
        ("[a](#part)", "[a](#part)"),
        ("[a](https://kafka.apache.org)", "[a](https://kafka.apache.org)"),
        ("[a](../shop)", "[a](../shop/README.md)"),
        ("[a](../shop/)", "[a](../shop/README.md)"),
        ("[a](../shop#part)", "[a](../shop/README.md#part)"),
        ("[a](../shop/code.py)", f"[a]({SOURCE}shop/code.py)"),
        ("[a](../shop/code.py#L3)", f"[a]({SOURCE}shop/code.py#L3)"),
        ("[a](images)", f"[a]({SOURCE}docs/images)"),
        ("[a](../.github/form.md)", f"[a]({SOURCE}.github/form.md)"),
        ("[a](..)", "[a](../README.md)"),
        ("[a](<../shop/code.py>)", f"[a](<{SOURCE}shop/code.py>)"),
        ('[a](../shop/code.py "A title")', f'[a]({SOURCE}shop/code.py "A title")'),
        ("[a](with%20space.py)", f"[a]({SOURCE}docs/with%20space.py)"),
        ("[a][b]\n\n[b]: ../shop/code.py", f"[a][b]\n\n[b]: {SOURCE}shop/code.py"),
        ("[a](no-such-file.py)", "[a](no-such-file.py)"),
        ("`[a](../shop/code.py)`", "`[a](../shop/code.py)`"),
        ("```md\n[a](../shop/code.py)\n```", "```md\n[a](../shop/code.py)\n```"),
        (
            "- b\n  ```md\n  [a](../shop/code.py)\n  ```",
            "- b\n  ```md\n  [a](../shop/code.py)\n  ```",
        ),
        ("~~~md\n[a](../shop/code.py)\n~~~", "~~~md\n[a](../shop/code.py)\n~~~"),
        ("`a` [b](../shop/code.py) `c`", f"`a` [b]({SOURCE}shop/code.py) `c`"),
    ],
)
def test_a_link_leads_to_a_page_or_to_the_source(
    checkout: Checkout, written: str, shown: str
) -> None:
    write(checkout.root / "docs/first.md", f"# Title\n\n{written}\n")

    assert checkout.read_page("docs/first.md") == (f"# Title\n\n{shown}\n", set())


def test_images_that_a_page_shows_belong_to_it(checkout: Checkout) -> None:
    text = "![a](images/a.png) [![b](images/b%20c.jpg)](first.md) ![c](none.png) ![d](x:d.png)"
    write(checkout.root / "docs/first.md", text)

    shown = checkout.read_page("docs/first.md")

    assert shown == (text, {"docs/images/a.png", "docs/images/b c.jpg"})


def test_a_document_that_is_no_text_is_named(checkout: Checkout) -> None:
    (checkout.root / "docs/first.md").write_bytes(b"\xff")

    with pytest.raises(ChangeError, match=r"docs/first\.md is not in UTF-8"):
        checkout.read_page("docs/first.md")
