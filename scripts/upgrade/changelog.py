"""docs/changelog.md: what is to be done in a copy that takes a release."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from scripts.changes import Report
from scripts.upgrade.merge import list_gone, read_head

FILE = "docs/changelog.md"
"""Not where an owner would have one, too."""
TO_DO = "### To do in a copy"
VERSION = re.compile(r"\d+\.\d+\.\d+")
SECTION = re.compile(r"^## \[?([\w.-]+)\]?.*\n", re.MULTILINE)
ITEM = re.compile(r"^- ((?:.|\n(?!- |\n))*)", re.MULTILINE)


def report_to_do(root: Path, since: str, report: Report) -> None:
    """Print what the releases after `since` ask to do, and changed files that went with them."""
    changelog = root / FILE
    for item in list_to_do(changelog.read_text(), since) if changelog.exists() else []:
        report(f"  to do, {item}")
    head = read_head(root)[:12]
    for file in list_gone(root):
        report(f"  to do, {file} went, and you had changed it: git show {head}:./{file} prints it")


def list_to_do(text: str, since: str) -> Sequence[str]:
    """Return the items of all releases after the one with the tag `since`, a line each.

    Of a tag that is in no heading, which has no release that is known, these are all.
    """
    found = VERSION.search(since)
    begun = found[0] if found else ""
    items: list[str] = []
    for release, section in list_sections(text):
        if release == begun:
            break
        _, _, rest = section.partition(f"{TO_DO}\n")
        part, _, _ = rest.partition("\n### ")
        items += [f"{release}: {' '.join(item[1].split())}" for item in ITEM.finditer(part)]
    return items


def list_sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each release, newest first, and what is below its heading."""
    headings = list(SECTION.finditer(text))
    for heading, following in zip_longest(headings, headings[1:]):
        end = following.start() if following else len(text)
        yield heading[1], text[heading.end() : end]
