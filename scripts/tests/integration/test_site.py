"""The site is built without a warning, shows every document whole, and needs no other host.

All can read it. Its pages are opened from a folder, and pictures of them are in
`.run/processes/screenshots`.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from markdown_it import MarkdownIt
from playwright.async_api import Browser, ViewportSize

from scripts.changes import CHECKOUT, ChangeError
from scripts.documentation.__main__ import SETTINGS, build_pages, open_checkout, read_settings
from scripts.documentation.pages import Checkout
from test_support.visits import find_barriers, visited

BUILT = "built"
ELSEWHERE = re.compile(r"(?:[a-z]+:)?//")
"""The beginning of the address of another host."""

RESOURCES = {"script": "src", "img": "src", "source": "srcset", "iframe": "src", "link": "href"}
"""The attributes by which a page loads something."""


class Shown(HTMLParser):
    """The links, the loaded resources and the anchors of a page, and the tags of its content."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.anchors: set[str] = set()
        self.content: list[str] = []
        self.is_in_content = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.is_in_content = self.is_in_content or tag == "article"
        if self.is_in_content:
            self.content.append(tag)
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in RESOURCES and RESOURCES[tag] in given:
            self.resources.append(given[RESOURCES[tag]])

    def handle_endtag(self, tag: str) -> None:
        self.is_in_content = self.is_in_content and tag != "article"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Shown]:
    """Every page by its file, but the one for addresses that a server does not know."""
    files = [file for file in site.rglob("*.html") if file.name != "404.html"]
    return {file: Shown(file.read_text()) for file in files}


def list_documents() -> Sequence[str]:
    return open_checkout("").pages


def to_html(page: str) -> str:
    path = Path(page)
    return str(path.with_name("index.html" if path.name == "README.md" else f"{path.stem}.html"))


def test_every_document_is_a_page(site: Path, pages: dict[Path, Shown]) -> None:
    assert list_documents()
    assert {str(file.relative_to(site)) for file in pages} == set(map(to_html, list_documents()))


BLOCKS = {"h1", "h2", "h3", "h4", "ol", "ul", "li", "table", "tr", "th", "td", "pre", "blockquote"}
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def test_headings_lists_tables_and_code_are_shown_as_such(
    site: Path, pages: dict[Path, Shown]
) -> None:
    """The generator reads Markdown in another way than the page of a repository: what one takes
    for a list, the other can take for text."""
    different = {}
    checkout = open_checkout("")
    for page in checkout.pages:
        written = Shown(f"<article>{MARKDOWN.render(checkout.read_text(page))}</article>")
        shown = [tag for tag in pages[site / to_html(page)].content if tag in BLOCKS]
        if shown != [tag for tag in written.content if tag in BLOCKS]:
            different[page] = Counter(written.content), Counter(shown)

    assert different == {}


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[Path, Shown]) -> None:
    loaded = [url for page in pages.values() for url in page.resources]
    styles = [file.read_text() for file in site.rglob("*.css")]

    assert loaded
    assert styles
    assert [url for url in loaded if ELSEWHERE.match(url)] == []
    assert [url for style in styles for url in find_loaded(style) if ELSEWHERE.match(url)] == []


def find_loaded(style: str) -> Iterator[str]:
    """Yield the addresses of the fonts, images and further styles of a style sheet."""
    for _, url in re.findall(r"(?:url\(|@import\s*)\s*(['\"]?)([^'\")\s]+)\1", style):
        yield url


def test_what_is_loaded_from_another_host_is_found() -> None:
    """The negative control."""
    page = Shown(
        '<script src="https://a.b/c.js"></script><img src="//a.b/c.png">'
        '<link rel="stylesheet" href="http://a.b/c.css"><a href="https://a.b">there</a>'
    )
    style = "@import 'https://a.b/c.css'; a { src: url(\"//a.b/c.woff2\") url(d.woff2) }"

    assert [bool(ELSEWHERE.match(url)) for url in page.resources] == [True, True, True]
    assert [bool(ELSEWHERE.match(url)) for url in find_loaded(style)] == [True, True, False]


def test_every_link_leads_to_a_page_an_anchor_or_a_file(pages: dict[Path, Shown]) -> None:
    links = [(file, link) for file, page in pages.items() for link in page.links]
    followed = [(file, link) for file, link in links if not re.match("(?!file:)[a-z]+:", link)]

    assert any(link.startswith("file:") for _, link in followed)
    assert any(urldefrag(link).fragment for _, link in followed)
    assert [f"{file}: {link}" for file, link in followed if not is_there(file, link, pages)] == []


def is_there(file: Path, link: str, pages: dict[Path, Shown]) -> bool:
    address, anchor = urldefrag(link)
    target = (file.parent / unquote(address.removeprefix("file://"))).resolve() if address else file
    if target not in pages:
        return target.exists()
    return not anchor or anchor.startswith("__") or unquote(anchor) in pages[target].anchors


@pytest.mark.parametrize(
    ("written", "flaw"),
    [
        ("[a](tour.md#start)", None),
        ("[a](no-such.md)", "no-such.md"),
        ("[a](no_such.py)", "no_such.py"),
        ("[a](tour.md#no-such)", "no-such"),
        ("[a](no-such-folder)", "no-such-folder"),
        ("[a](/tour.md)", "/tour.md"),
    ],
)
def test_a_link_that_leads_nowhere_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], written: str, flaw: str | None
) -> None:
    (tmp_path / "first.md").write_text(f"# First\n\nSee {written}.\n")
    (tmp_path / "tour.md").write_text("# A tour\n\n## Start\n")

    built = build_small(tmp_path, ["first.md", "tour.md"])

    assert built == (flaw is None)
    printed = capfd.readouterr().err
    assert (flaw or "") in printed
    assert bool(printed) == (flaw is not None)


def test_a_document_in_no_section_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("first.md", "forgotten.md"):
        (tmp_path / name).write_text("# A title\n")

    assert not build_small(tmp_path, ["first.md"])
    assert "forgotten.md" in capfd.readouterr().err


def test_a_site_is_replaced_by_the_next_one_but_not_by_one_with_flaws(tmp_path: Path) -> None:
    for name in ("first.md", "second.md"):
        (tmp_path / name).write_text("# A title\n")
    assert build_small(tmp_path, ["first.md", "second.md"])
    (tmp_path / "second.md").unlink()

    assert build_small(tmp_path, ["first.md"])
    assert not (tmp_path / BUILT / "second.html").exists()
    (tmp_path / "first.md").write_text("[a](no-such.md)\n")
    assert not build_small(tmp_path, ["first.md"])

    assert (tmp_path / BUILT / "first.html").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"first.md", BUILT}


def test_an_image_is_shown_and_a_folder_may_have_the_name_of_ours(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a.md").write_text("# A title\n\n![b](b.jpg)\n")
    (tmp_path / "web" / "b.jpg").write_bytes(b"\xff")
    checkout = Checkout(tmp_path, ["web/a.md", "web/b.jpg"], "x:")

    assert build_pages(checkout, {**read_settings(SETTINGS), "nav": ["web/a.md"]}, tmp_path / BUILT)

    assert Shown((tmp_path / BUILT / "web" / "a.html").read_text()).resources.count("b.jpg") == 1
    assert (tmp_path / BUILT / "web" / "b.jpg").is_file()


def test_an_address_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "first.md").write_text("# A title\n\nSee http://127.0.0.1:8001/docs there.\n")

    assert build_small(tmp_path, ["first.md"])

    shown = Shown((tmp_path / BUILT / "first.html").read_text())
    assert "http://127.0.0.1:8001/docs" in shown.links


def test_settings_that_are_malformed_are_named(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text("a: [")

    with pytest.raises(ChangeError, match=r"mkdocs\.yml is malformed: "):
        read_settings(tmp_path / "mkdocs.yml")


def test_a_folder_that_exists_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("text")

    ended = subprocess.run(
        ["make", "docs", f"to={tmp_path}"], cwd=CHECKOUT, capture_output=True, text=True
    )

    assert ended.returncode != 0
    assert f"{tmp_path} exists: name a new folder" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def build_small(root: Path, navigation: Sequence[str]) -> bool:
    """Build a site of the documents of a folder, with the settings of ours, below that folder."""
    checkout = Checkout(root, [file.name for file in root.iterdir() if file.is_file()], "x:")
    return build_pages(checkout, {**read_settings(SETTINGS), "nav": navigation}, root / BUILT)


SEEN = (
    "index.html",
    "docs/tour.html",
    "docs/architecture.html",
    "reference/verbs.html",
    "concepts/system.html",
    "concepts/order.html",
    "concepts/modules.html",
)


async def test_all_can_read_the_pages(site: Path, chromium: Browser, screenshots: Path) -> None:
    """In both colour schemes, wide and narrow, axe-core finds nothing serious."""
    folder = site.as_uri()
    barriers = {}
    for scheme in ("light", "dark"):
        for width in (1280, 400):
            viewport = ViewportSize(width=width, height=900)
            async with visited(chromium, folder, viewport=viewport, color_scheme=scheme) as visit:
                for path in SEEN:
                    await visit.page.goto(f"{folder}/{path}")
                    barriers[scheme, width, path] = await find_barriers(visit.page)
                    name = f"site-{Path(path).stem}-{scheme}-{width}.png"
                    await visit.page.screenshot(path=screenshots / name)

    assert {where: found for where, found in barriers.items() if found} == {}


DIAGRAMS = [path for path in SEEN if path.startswith("concepts/")]
OVERFLOWING = """
    (all) => all.flatMap((svg) => {
        const holds = (box, x, y) =>
            box.x <= x && x <= box.x + box.width && box.y <= y && y <= box.y + box.height;
        const rects = [...svg.querySelectorAll("rect")].map((each) => each.getBBox());
        const boxes = [svg.viewBox.baseVal, ...rects];
        return [...svg.querySelectorAll("text")].filter((each) => {
            const { x, y, width, height } = each.getBBox();
            return boxes.some((box) => holds(box, x, y) && !holds(box, x + width, y + height));
        }).map((each) => each.textContent);
    })
"""
"""The texts that end outside of a box in which they begin, or outside of their diagram."""


@pytest.mark.parametrize("path", DIAGRAMS)
async def test_no_text_of_a_diagram_leaves_its_box(
    site: Path, chromium: Browser, path: str
) -> None:
    folder = site.as_uri()
    async with visited(chromium, folder) as visit:
        await visit.page.goto(f"{folder}/{path}")
        texts = visit.page.locator("figure.diagram text")

        assert await texts.count() > 0
        assert await visit.page.locator("figure.diagram svg").evaluate_all(OVERFLOWING) == []
        await visit.page.add_style_tag(content=".diagram text { font-size: 18px !important }")
        assert await visit.page.locator("figure.diagram svg").evaluate_all(OVERFLOWING) != []


CUT = """
    (all) => all.filter((svg) => svg.clientWidth > svg.parentElement.clientWidth).length
"""
"""How many diagrams are wider than their place."""


async def test_a_diagram_is_whole_on_paper(site: Path, chromium: Browser) -> None:
    folder = site.as_uri()
    async with visited(chromium, folder, viewport=ViewportSize(width=686, height=900)) as visit:
        await visit.page.goto(f"{folder}/concepts/order.html")
        diagrams = visit.page.locator("figure.diagram svg")
        assert await diagrams.evaluate_all(CUT) > 0

        await visit.page.emulate_media(media="print")

        assert await diagrams.evaluate_all(CUT) == 0


async def test_a_barrier_is_found(chromium: Browser) -> None:
    """The negative control."""
    page = await chromium.new_page()
    await page.set_content("<html lang=en><title>a</title><h1 style='color: #ddd'>pale</h1></html>")

    [found] = await find_barriers(page)

    await page.close()
    assert "contrast" in found
