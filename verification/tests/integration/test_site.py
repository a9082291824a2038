"""The site is built without a warning, shows every document whole, and needs no other host.

Its search works in pages that a browser opens from a folder, and it is served while it is written.
"""

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import httpx
import pytest
from playwright.async_api import Browser, expect

from local_stack import ports
from scripts.documentation.__main__ import CONFIGURATION, GENERATOR, PAGES, SITE, VARIABLES
from test_support.system.eventually import eventually
from test_support.visits import visited

CHECKOUT = Path(__file__).parents[3]
BUILD_SECONDS_MAX = 120
STOP_SECONDS_MAX = 15
ELSEWHERE = re.compile(r"(?:[a-z]+:)?//")
"""The beginning of the address of another host."""

RESOURCES = {"script": "src", "img": "src", "source": "srcset", "iframe": "src", "link": "href"}
"""The attributes by which a page loads something."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all files of a build, with what the build printed in `printed`."""
    folder = tmp_path_factory.mktemp("docs")
    ended = subprocess.run(
        [sys.executable, "-m", "scripts.documentation", "--to", folder],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_SECONDS_MAX,
    )
    (folder / "printed").write_text(ended.stdout)
    assert ended.returncode == 0, ended.stdout
    return folder


class Page(HTMLParser):
    """The links, the loaded resources and the anchors of a page, and the tags of its content."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.anchors: set[str] = set()
        self.content: list[str] = []
        self.in_content = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.in_content = self.in_content or tag == "article"
        if self.in_content:
            self.content.append(tag)
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in RESOURCES and RESOURCES[tag] in given and given.get("rel") != "canonical":
            self.resources.append(given[RESOURCES[tag]])

    def handle_endtag(self, tag: str) -> None:
        self.in_content = self.in_content and tag != "article"


@pytest.fixture(scope="module")
def pages(built: Path) -> dict[Path, Page]:
    """Every page by its file."""
    return {path: Page(path.read_text()) for path in (built / SITE).rglob("*.html")}


def test_it_is_built_without_a_warning(built: Path) -> None:
    printed = (built / "printed").read_text()

    assert not re.search("warn|error", printed, re.IGNORECASE), printed


@pytest.mark.parametrize(
    ("target", "status"),
    [("tour.md#start", 0), ("no-such.md", 1), ("tour.md#no-such", 1)],
)
def test_a_link_that_leads_nowhere_is_refused(
    built: Path, tmp_path: Path, target: str, status: int
) -> None:
    settings = json.loads((built / CONFIGURATION).read_text())
    pages = ["first.md", "tour.md"]
    (tmp_path / CONFIGURATION).write_text(json.dumps({**settings, "nav": pages}))
    folder = tmp_path / PAGES
    folder.mkdir()
    (folder / pages[0]).write_text(f"# First\n\nSee [there]({target}).\n")
    (folder / pages[1]).write_text("# A tour\n\n## Start\n")

    ended = subprocess.run(
        [*GENERATOR, "build", "--strict", "-f", tmp_path / CONFIGURATION],
        env=VARIABLES,
        capture_output=True,
        timeout=BUILD_SECONDS_MAX,
    )

    assert ended.returncode == status


def test_every_document_is_a_page(built: Path) -> None:
    documents = [
        path.relative_to(CHECKOUT)
        for pattern in ("README.md", "docs/**/*.md", "*/README.md", "*/*/README.md")
        for path in CHECKOUT.glob(pattern)
        if not path.relative_to(CHECKOUT).parts[0].startswith(".")
    ]

    assert len(documents) > 70
    assert [path for path in documents if not to_html(built / SITE / path).is_file()] == []


def to_html(path: Path) -> Path:
    return path.with_name("index.html" if path.name == "README.md" else f"{path.stem}.html")


def test_nothing_is_loaded_from_another_host(built: Path, pages: dict[Path, Page]) -> None:
    loaded = [url for page in pages.values() for url in page.resources]
    styles = [path.read_text() for path in (built / SITE).rglob("*.css")]

    assert loaded
    assert styles
    assert [url for url in loaded if ELSEWHERE.match(url)] == []
    assert [url for style in styles for url in loaded_by(style) if ELSEWHERE.match(url)] == []


def loaded_by(style: str) -> Iterator[str]:
    """The addresses of the fonts, images and further styles of a style sheet."""
    for _, url in re.findall(r"(?:url\(|@import\s*)\s*(['\"]?)([^'\")\s]+)\1", style):
        yield url


def test_what_is_loaded_from_another_host_is_found() -> None:
    """The negative control."""
    page = Page(
        '<script src="https://a.b/c.js"></script><img src="//a.b/c.png">'
        '<link rel="stylesheet" href="http://a.b/c.css"><a href="https://a.b">there</a>'
    )
    style = "@import 'https://a.b/c.css'; a { src: url(\"//a.b/c.woff2\") url(d.woff2) }"

    assert [bool(ELSEWHERE.match(url)) for url in page.resources] == [True, True, True]
    assert [bool(ELSEWHERE.match(url)) for url in loaded_by(style)] == [True, True, False]


def test_every_link_between_pages_and_every_anchor_is_there(pages: dict[Path, Page]) -> None:
    missing = [
        f"{path.name}: {link}"
        for path, page in pages.items()
        if path.name != "404.html"  # it can be shown at any address
        for link in page.links
        if not re.match("[a-z]+:", link) and not is_there(path, link, pages)
    ]

    assert sum(len(page.links) for page in pages.values()) > 1_000
    assert missing == []


def is_there(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    url, anchor = urldefrag(link)
    target = (path.parent / unquote(url)).resolve() if url else path.resolve()
    if target.is_dir():
        target /= "index.html"
    if target not in pages:
        return target.is_file()
    return not anchor or anchor.startswith("__") or unquote(anchor) in pages[target].anchors


FENCED = re.compile(r"^ *```\w*\n.*?^ *```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^\|(?: ?-+ ?\|)+$", re.MULTILINE)
ITEM = re.compile(r"^ *(?:-|\d+\.) ", re.MULTILINE)


def test_blocks_of_code_tables_and_lists_are_shown_as_such(
    built: Path, pages: dict[Path, Page]
) -> None:
    """The generator reads Markdown in another way than the page of a repository: what it takes for
    text is found by counting."""
    wrong = {}
    for path in sorted((built / PAGES).rglob("*.md")):
        name = path.relative_to(built / PAGES)
        text = path.read_text()
        outside = FENCED.sub("", text)
        written = (
            len(FENCED.findall(text)),
            len(TABLE.findall(outside)),
            len(ITEM.findall(outside)),
        )
        content = Counter(pages[to_html(built / SITE / name)].content)
        shown = (content["pre"], content["table"], content["li"])
        if shown != written:
            wrong[str(name)] = (written, shown)

    assert wrong == {}


async def test_a_page_is_found_from_a_folder(built: Path, chromium: Browser) -> None:
    folder = (built / SITE).as_uri()

    async with visited(chromium, folder) as visit:
        page = visit.page
        await page.goto(f"{folder}/index.html")
        await page.locator("[data-md-component=search-query]").click()
        await page.keyboard.type("crypto-shredded")
        found = page.locator(".md-search-result__link", has_text="Personal data is crypto-shredded")
        await found.first.click()

        await expect(page.locator("h1")).to_contain_text("Personal data is crypto-shredded")


@pytest.mark.long
def test_it_is_served_until_it_is_interrupted(tmp_path: Path) -> None:
    port = ports.find_free()
    command = [sys.executable, "-m", "scripts.documentation", "--serve", f"--port={port}"]
    with subprocess.Popen([*command, "--to", tmp_path], cwd=CHECKOUT) as served:
        try:
            eventually(
                lambda: httpx.get(f"http://127.0.0.1:{port}/docs/tour.html").text,
                lambda text: "A tour: break it" in text,
                what="the tour is served",
                seconds_max=60,
            )
        finally:
            served.send_signal(signal.SIGINT)
            status = served.wait(STOP_SECONDS_MAX)
    assert status == 0
