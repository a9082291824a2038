"""Cut rows, items, sentences and sections out of Markdown."""

import re
import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from scripts.parts.lines import drop_lines, indentation, join_continued

PARSER = MarkdownIt("commonmark").enable("table")
BULLET = re.compile(r"\s*([-*+]|\d+[.)])\s+")
CLAUSE = re.compile(r"(?<=[.!?;])(?<!e\.g\.)(?<!i\.e\.)\s+")
LABEL = re.compile(r"\*\*[^*]+[.:]\*\* ")
"""At the begin of a paragraph, such as that of a section of a decision record."""
CELL = re.compile(r"(?<!\\)\|")
CODE = re.compile(r"`[^`]+`")
JOINT = "\0"
"""For a blank at which no line ends."""
PATH = re.compile(r"`[^`]+`|\[[^\]]+\]\([^)]+\)")
"""Code, or a link."""
SPACES = re.compile(r"\s+")
LINE_CHARACTERS_MAX = 130
"""Of a paragraph that is filled again; the lines of shorter ones stay shorter."""
LINE_CHARACTERS = 100


def cut_document(text: str, pattern: re.Pattern[str], width: int = 0) -> str:
    """Return `text` without what matches, nor headings that this leaves without a text.

    A paragraph with a cut is filled again to `width` characters, or as wide as it was. Quotations,
    indented code and HTML stay as they are.
    """
    if not pattern.search(join(text)):
        return text
    document = Document(text, pattern, width)
    document.cut(document.root)
    left = document.render()
    while (shorter := drop_empty_sections(left)) != left:
        left = shorter
    return left


class Document:
    """The lines of a text, and those that go."""

    def __init__(self, text: str, pattern: re.Pattern[str], width: int) -> None:
        self.root = SyntaxTreeNode(PARSER.parse(text))
        self._lines = text.split("\n")
        self._pattern = pattern
        self._width = width
        self._dropped: set[int] = set()
        self._joined: set[int] = set()

    def render(self) -> str:
        lines = (
            None if number in self._joined else line for number, line in enumerate(self._lines)
        )
        return drop_lines(lines, self._dropped)

    def cut(self, node: SyntaxTreeNode) -> None:
        """Cut what matches out of a block and those in it."""
        if node.type != "root" and not self._matches(join("\n".join(self._take(node)))):
            return
        match node.type:
            case "heading":
                self._drop_section(node)
            case "paragraph":
                self._cut_paragraph(node)
            case "fence":
                self._cut_code(node)
            case "table":
                self._cut_table(node)
            case "list_item" if self._matches(CLAUSE.split(self._read_first(node))[0]):
                self._drop(node)
            case "root" | "bullet_list" | "ordered_list" | "list_item":
                for child in node.children:
                    self.cut(child)

    def _matches(self, text: str) -> bool:
        return self._pattern.search(text) is not None

    def _take(self, node: SyntaxTreeNode) -> list[str]:
        first, end = span(node)
        return self._lines[first:end]

    def _drop(self, node: SyntaxTreeNode) -> None:
        self._dropped |= set(range(*span(node)))

    def _drop_section(self, heading: SyntaxTreeNode) -> None:
        """The heading of the document stays."""
        first, _ = span(heading)
        if heading.tag == "h1":
            return
        ends = [
            span(each)[0]
            for each in self.root.children
            if each.type == "heading" and each.tag <= heading.tag and span(each)[0] > first
        ]
        self._dropped |= set(range(first, min(ends, default=len(self._lines))))

    def _read_first(self, item: SyntaxTreeNode) -> str:
        """Return the first paragraph of an item."""
        first = item.children[0] if item.children else item
        return join(BULLET.sub("", "\n".join(self._take(first)), count=1))

    def _cut_paragraph(self, node: SyntaxTreeNode) -> None:
        lines = self._take(node)
        item = node.parent
        begins_item = item and item.type == "list_item" and span(item)[0] == span(node)[0]
        bullet = BULLET.match(lines[0]) if begins_item else None
        head = bullet[0] if bullet else ""
        indent = " " * (len(head) or indentation(lines[0]))
        text = cut_text(join("\n".join(lines)[len(head) :]), self._pattern)
        if not text:
            self._drop(node)
            return
        longest = max(len(line) for line in lines)
        width = self._width or min(LINE_CHARACTERS_MAX, max(LINE_CHARACTERS, longest))
        first, end = span(node)
        self._lines[first] = "\n".join(fill(text, width, head or indent, indent))
        self._joined |= set(range(first + 1, end))

    def _cut_code(self, node: SyntaxTreeNode) -> None:
        """Cut the matching lines, and those that a backslash joins to them."""
        first, end = span(node)
        inside = range(first + 1, end - 1)
        groups = join_continued(self._lines, inside)
        gone = {
            number
            for group in groups
            if any(self._matches(self._lines[number]) for number in group)
            for number in group
        }
        left = [self._lines[number] for number in inside if number not in gone]
        self._dropped |= gone if any(line.strip() for line in left) else set(range(first, end))

    def _cut_table(self, node: SyntaxTreeNode) -> None:
        """Cut rows whose first cell matches, and of other cells the items or clauses that do."""
        first, end = span(node)
        rows = range(first + 2, end)
        for number in rows:
            if self._matches(self._lines[number]):
                row = cut_row(self._lines[number], self._pattern)
                self._lines[number] = row
                self._dropped |= set() if row else {number}
        if self._matches(self._lines[first]) or self._dropped.issuperset(rows):
            self._drop(node)


def span(node: SyntaxTreeNode) -> tuple[int, int]:
    """Return the first line of a block, counted from 0, and that after its last."""
    assert node.map
    return node.map


def join(text: str) -> str:
    return SPACES.sub(" ", text).strip()


def cut_row(row: str, pattern: re.Pattern[str]) -> str:
    """Return a row of a table without what matches; nothing if a cell would become empty."""
    cells = CELL.split(row.strip().removeprefix("|").removesuffix("|"))
    kept = [cut_cell(cell, pattern) if pattern.search(cell) else cell for cell in cells]
    if pattern.search(cells[0]) or any(
        before.strip() and not after.strip() for before, after in zip(cells, kept, strict=True)
    ):
        return ""
    return f"|{'|'.join(kept)}|"


def cut_cell(cell: str, pattern: re.Pattern[str]) -> str:
    """Return a cell without the items that match, if it lists paths, or else the clauses."""
    items = cell.strip().split(", ")
    if all(PATH.fullmatch(item) for item in items):
        return f" {', '.join(item for item in items if not pattern.search(item))} "
    return f" {cut_text(cell.strip(), pattern)} "


def cut_text(text: str, pattern: re.Pattern[str]) -> str:
    """Return the sentences and clauses of `text` that do not match."""
    label = LABEL.match(text)
    if label and not pattern.search(label[0]):
        rest = cut_text(text[label.end() :], pattern)
        return label[0] + rest if rest else ""
    sentences: list[list[str]] = [[]]
    for clause in CLAUSE.split(text):
        sentences[-1].append(clause)
        if not clause.endswith(";"):
            sentences.append([])
    return " ".join(filter(None, (cut_sentence(clauses, pattern) for clauses in sentences)))


def cut_sentence(clauses: Sequence[str], pattern: re.Pattern[str]) -> str:
    """Return a sentence of the clauses that do not match; it begins and ends as one."""
    kept = [clause for clause in clauses if not pattern.search(clause)]
    if not kept:
        return ""
    text = " ".join(kept)
    if kept[0] is not clauses[0]:
        text = text[:1].upper() + text[1:]
    return text if kept[-1] is clauses[-1] else re.sub(r";$", ".", text)


def fill(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """Return lines of at most `width` characters, in which no code is broken."""
    joined = CODE.sub(lambda code: code[0].replace(" ", JOINT), text)
    lines = textwrap.wrap(
        joined,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(JOINT, " ") for line in lines]


def drop_empty_sections(text: str) -> str:
    """Return `text` without headings directly before their equal or higher, or the end."""
    blocks = SyntaxTreeNode(PARSER.parse(text)).children
    empty = {
        number
        for block, after in zip_longest(blocks, blocks[1:])
        if block.type == "heading" and block.tag != "h1"
        if after is None or (after.type == "heading" and after.tag <= block.tag)
        for number in range(*span(block))
    }
    return drop_lines(text.split("\n"), empty)
