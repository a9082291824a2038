"""The pages of the site: documents and generated pages, and where their links lead.

A page keeps the path of its document, so links between documents need no change. A link to any
other file of the repository leads to `source_address`; one to a file that does not exist is left as
it is, and the strict build refuses it.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

Navigation: TypeAlias = Sequence["str | Mapping[str, str | Navigation]"]
"""As in `mkdocs.yml`: paths, patterns of paths, and sections by their titles."""

IMAGES = (".png", ".svg", ".jpg")
INDEX = "README.md"

LINK = re.compile(
    r"(?P<code>^```.*?^ *```|`[^`\n]+`)|(?P<before>\]\()(?P<target>[^)\s]+)(?P<after>\))",
    re.DOTALL | re.MULTILINE,
)
"""A link or an image, or code, in which nothing is a link."""

ELSEWHERE = re.compile(r"[a-z]+:|#")
"""The beginning of a link to another host or to the same page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The text of each page, the images on them, and the navigation without patterns."""

    navigation: Navigation
    texts: Mapping[str, str]
    images: Set[str]


def collect(
    checkout: Path, navigation: Navigation, generated: Mapping[str, str], source_address: str
) -> Site:
    """The site that a navigation with patterns describes; `generated` are further pages by path."""
    resolved, pages = resolve(navigation, sorted(find_documents(checkout) | generated.keys()))
    texts, images = {}, set[str]()
    for page in pages:
        text = generated[page] if page in generated else (checkout / page).read_text()
        links = Links(page, frozenset(pages), checkout, source_address)
        texts[page] = LINK.sub(links.replace, text)
        images |= links.images
    return Site(navigation=resolved, texts=texts, images=images)


def find_documents(checkout: Path) -> Set[str]:
    """The paths of all documents, but those in hidden folders."""
    found = (*checkout.glob("*.md"), *checkout.glob("[!.]*/**/*.md"))
    return {str(path.relative_to(checkout)) for path in found}


def resolve(navigation: Navigation, paths: Sequence[str]) -> tuple[Navigation, Sequence[str]]:
    """The navigation with each pattern replaced by the paths that it matches, and all its pages.

    A page appears once: a path that is named somewhere is matched by no pattern, and a pattern
    matches what no earlier one has. A section without pages is left out.
    """
    named = {entry for entry in entries(navigation) if "*" not in entry}
    pages: list[str] = []

    def matches(entry: str) -> Sequence[str]:
        if "*" not in entry:
            found = [entry] if entry in paths else []
        else:
            found = [
                path
                for path in paths
                if is_match(path, entry) and path not in named and path not in pages
            ]
        pages.extend(found)
        return found

    def expand(part: Navigation) -> Iterator[str | Mapping[str, str | Navigation]]:
        for entry in part:
            if isinstance(entry, str):
                yield from matches(entry)
                continue
            for title, content in entry.items():
                if isinstance(content, str):
                    yield from ({title: found} for found in matches(content))
                elif inner := list(expand(content)):
                    yield {title: inner}

    return list(expand(navigation)), pages


def entries(navigation: Navigation) -> Iterator[str]:
    """The paths and patterns of a navigation."""
    for entry in navigation:
        if isinstance(entry, str):
            yield entry
        else:
            for content in entry.values():
                yield from [content] if isinstance(content, str) else entries(content)


def is_match(path: str, pattern: str) -> bool:
    """As a shell has it: a star matches within one folder."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


class Links:
    """Where the links of one page lead; `images` are those that were on it."""

    def __init__(self, page: str, pages: Set[str], checkout: Path, source_address: str) -> None:
        self._folder = posixpath.dirname(page)
        self._pages = pages
        self._checkout = checkout
        self._source_address = source_address
        self.images = set[str]()

    def replace(self, match: re.Match[str]) -> str:
        """For LINK: the same text with another target."""
        if match["code"]:
            return match[0]
        return match["before"] + self.lead(match["target"]) + match["after"]

    def lead(self, target: str) -> str:
        if ELSEWHERE.match(target):
            return target
        written, mark, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(self._folder, written))
        index = posixpath.join(path, INDEX)
        if path in self._pages or not (self._checkout / path).exists():
            return target
        if path.endswith(IMAGES):
            self.images.add(path)
            return target
        if index in self._pages:
            return posixpath.relpath(index, self._folder or ".") + mark + anchor
        return self._source_address + path + mark + anchor
