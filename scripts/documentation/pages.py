"""The pages of the site: documents and generated pages, their sections, where their links lead.

A page keeps the path of its document, so a link between two documents needs no change. A link to
any other file leads to the source; one to a file that does not exist is left as it is, and the
strict build refuses it.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from scripts.changes import ChangeError

Navigation: TypeAlias = Sequence["str | Mapping[str, str | Navigation]"]
"""As in `mkdocs.yml`: paths, patterns of paths, and sections by their titles."""

DOCUMENT = ".md"
ABOUT_PAGES = ".meta.yml"
"""What is said about all pages of a folder."""
IMAGES = (".png", ".svg", ".jpg", ".jpeg", ".gif", ".webp")
INDEX = "README.md"
ANY = "**"
"""The pattern of all pages."""

LINK = re.compile(
    r"(?P<code>^ *(?P<fence>```|~~~).*?^ *(?P=fence)|`[^`\n]+`)"
    r"|(?P<before>\]\(<?|^\[[^\]\n]+\]: +<?)(?P<target>[^)\s>]+)",
    re.DOTALL | re.MULTILINE,
)
"""A link, an image or a definition of a link, up to its target; or code, in which there is none."""

ELSEWHERE = re.compile(r"[a-z]+:|#")
"""The beginning of a link to another host or to a place of the same page."""


class Page(NamedTuple):
    """A text, and the paths of the images that it shows."""

    text: str
    images: AbstractSet[str]


class Checkout:
    """A checkout as a source of pages."""

    def __init__(
        self,
        root: Path,
        files: Iterable[str],
        source: str,
        generated: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Find the pages among the files: the documents outside of folders with a dot.

        Args:
            files: their paths, relative to `root`.
            source: the address at which readers find them.
            generated: the texts of further pages by their paths, which are those of no file.
        """
        self.root = root
        self._source = source.rstrip("/") + "/"
        self._generated = generated
        self.pages: list[str] = []
        self.about_pages: list[str] = []
        for path in sorted({*files, *generated}, key=rank):
            folder, name = posixpath.split(path)
            if any(part.startswith(".") for part in folder.split("/")):
                continue
            if name.endswith(DOCUMENT):
                self.pages.append(path)
            elif name == ABOUT_PAGES:
                self.about_pages.append(path)
        self._known = {*self.pages}

    def read_page(self, path: str) -> Page:
        """Return a document with links that lead to other pages or to the source.

        Raises:
            ChangeError: it is no text.
        """
        images = set()

        def replace(match: re.Match[str]) -> str:
            if match["code"]:
                return match[0]
            target = match["target"]
            if (image := self.find_image(path, target)) is not None:
                images.add(image)
                return match[0]
            return match["before"] + self.lead(path, target)

        return Page(LINK.sub(replace, self.read_text(path)), images)

    def read_text(self, path: str) -> str:
        """Return a text as it was written, or generated.

        Raises:
            ChangeError: it is no text.
        """
        if path in self._generated:
            return self._generated[path]
        try:
            return (self.root / path).read_text("utf-8")
        except UnicodeDecodeError:
            raise ChangeError(f"{path} is not in UTF-8: write it in UTF-8, then again") from None

    def find_image(self, page: str, target: str) -> str | None:
        """Return the path of an image that a page shows; None if the target is no image here."""
        path = join(page, unquote(target))
        is_here = path.endswith(IMAGES) and (self.root / path).is_file()
        return path if is_here and not ELSEWHERE.match(target) else None

    def lead(self, page: str, target: str) -> str:
        """Return where a link on a page leads on the site."""
        if ELSEWHERE.match(target):
            return target
        written, mark, anchor = target.partition("#")
        path = join(page, unquote(written))
        index = posixpath.normpath(posixpath.join(path, INDEX))
        if path in self._known or not (self.root / path).exists():
            return target
        if index in self._known:
            return posixpath.relpath(index, posixpath.dirname(page) or ".") + mark + anchor
        return self._source + quote(path) + mark + anchor


def rank(path: str) -> tuple[str, bool, str]:
    """Return the place of a document: after those of folders before its own, the index first."""
    folder, name = posixpath.split(path)
    return folder, name != INDEX, name


def join(page: str, target: str) -> str:
    """Return the path to which a relative link on a page leads."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def resolve(navigation: Navigation, pages: Iterable[str]) -> Navigation:
    """Return the navigation with each pattern replaced by the pages that it matches.

    No pattern matches a page that is named, or that an earlier pattern has matched. A section
    without pages is left out.
    """
    named = {entry for entry in list_entries(navigation) if "*" not in entry}
    rest = [page for page in pages if page not in named]

    def match(entry: str) -> Sequence[str]:
        if "*" not in entry:
            return [entry]
        matched = [page for page in rest if is_match(page, entry)]
        rest[:] = [page for page in rest if page not in matched]
        return matched

    def expand(part: Navigation) -> Iterator[str | Mapping[str, str | Navigation]]:
        for entry in part:
            if isinstance(entry, str):
                yield from match(entry)
                continue
            for title, content in entry.items():
                if isinstance(content, str):
                    yield {title: content}
                elif inner := list(expand(content)):
                    yield {title: inner}

    return list(expand(navigation))


def list_entries(navigation: Navigation) -> Iterator[str]:
    """Yield the paths and patterns of a navigation."""
    for entry in navigation:
        if isinstance(entry, str):
            yield entry
        else:
            for content in entry.values():
                yield from [content] if isinstance(content, str) else list_entries(content)


def is_match(path: str, pattern: str) -> bool:
    """Return whether a pattern matches: a star stays within one folder, but in `**` alone."""
    if pattern == ANY:
        return True
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), path) is not None
