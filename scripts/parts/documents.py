"""Cut rows, items, sentences and sections out of Markdown."""

import re
import textwrap
from collections.abc import Sequence

from scripts.parts.text import join_continued

HEADING = re.compile(r"(?P<level>#+) ")
ITEM = re.compile(r"(?P<indent>\s*)([-*]|\d+\.) ")
SENTENCE = re.compile(r"(?<=[.!?;])(?<!e\.g\.)(?<!i\.e\.)\s+")
FENCE = re.compile(r"\s*(```|~~~)")
SPACES = re.compile(r"\s+")


def cut_document(text: str, pattern: re.Pattern[str]) -> str:
    """`text` without what matches, and without headings and tables that this leaves empty."""
    if not pattern.search(text):
        return text
    blocks = [cut_block(block, pattern) for block in split_blocks(text.splitlines())]
    kept = [block for block in drop_sections(blocks, pattern) if block]
    return "\n\n".join("\n".join(block) for block in kept) + "\n"


def split_blocks(lines: Sequence[str]) -> list[list[str]]:
    """Headings, code blocks as a whole, and what blank lines separate."""
    blocks: list[list[str]] = [[]]
    fence = False
    for line in lines:
        if FENCE.match(line):
            fence = not fence
        if not fence and not line.strip():
            blocks.append([])
        elif HEADING.match(line) and not fence:
            blocks += [[line], []]
        else:
            blocks[-1].append(line)
    return [block for block in blocks if block]


def cut_block(block: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    if HEADING.match(block[0]) or not any(pattern.search(line) for line in block):
        return list(block) if not is_paragraph(block) or not pattern.search(" ".join(block)) else []
    if FENCE.match(block[0]):
        return cut_code(block, pattern)
    if block[0].lstrip().startswith("|"):
        return cut_table(block, pattern)
    if ITEM.match(block[0]):
        return cut_items(block, pattern)
    return cut_paragraph(block, pattern)


def is_paragraph(block: Sequence[str]) -> bool:
    return not (
        FENCE.match(block[0])
        or ITEM.match(block[0])
        or block[0].lstrip().startswith(("|", "#", "!"))
    )


def cut_code(block: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """A code block without the matching lines, and those that a backslash joins to them."""
    lines = block[1:-1]
    kept: list[str] = []
    for group in join_continued(lines, range(1, len(lines) + 1)):
        joined = [lines[number - 1] for number in group]
        if not any(pattern.search(line) for line in joined):
            kept += joined
    return [block[0], *kept, block[-1]] if any(line.strip() for line in kept) else []


def cut_table(block: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """A row goes where its first cell matches; of other cells, the clauses that match."""
    rows = list(block[:2])
    for row in block[2:]:
        cells = re.split(r"(?<!\\)\|", row.strip().strip("|"))
        if not pattern.search(row):
            rows.append(row)
            continue
        if pattern.search(cells[0]):
            continue
        kept = [
            cell if not pattern.search(cell) else f" {cut_text(cell, pattern)} " for cell in cells
        ]
        if all(cell.strip() for cell in kept):
            rows.append(f"|{'|'.join(kept)}|")
    return rows if len(rows) > 2 else []


def cut_items(block: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """Of each item the sentences that match; all of it, with all below, if its first does."""
    items: list[list[str]] = []
    for line in block:
        if ITEM.match(line) or not items:
            items.append([line])
        else:
            items[-1].append(line)
    kept: list[str] = []
    below = -1
    for item in items:
        found = ITEM.match(item[0])
        depth = len(found["indent"]) if found else 0
        if -1 < below < depth:
            continue
        below = -1
        if not pattern.search(SPACES.sub(" ", " ".join(item))):
            kept += item
            continue
        bullet = found[0] if found else ""
        text = SPACES.sub(" ", " ".join(item)[len(bullet) :]).strip()
        sentences = SENTENCE.split(text)
        if pattern.search(sentences[0]):
            below = depth
            continue
        indent = " " * len(bullet)
        kept += textwrap.wrap(
            cut_text(text, pattern),
            width_of(block),
            initial_indent=bullet,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return kept


def cut_paragraph(block: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    text = cut_text(" ".join(line.strip() for line in block), pattern)
    return textwrap.wrap(text, width_of(block), break_long_words=False, break_on_hyphens=False)


def cut_text(text: str, pattern: re.Pattern[str]) -> str:
    """The sentences and clauses of `text` that do not match."""
    parts = SENTENCE.split(SPACES.sub(" ", text).strip())
    kept = " ".join(part for part in parts if not pattern.search(part))
    # What a clause introduced is gone, too.
    return re.sub(r"[;:,]$", ".", kept)


def width_of(block: Sequence[str]) -> int:
    return max(100, *(len(line) for line in block))


def drop_sections(blocks: Sequence[list[str]], pattern: re.Pattern[str]) -> list[list[str]]:
    """The blocks without sections whose heading matches, and without headings of nothing."""
    kept: list[list[str]] = []
    cut_level = 0
    for block in blocks:
        heading = HEADING.match(block[0]) if block else None
        if heading:
            level = len(heading["level"])
            if cut_level and level > cut_level:
                continue
            cut_level = level if pattern.search(block[0]) and level > 1 else 0
        if not cut_level:
            kept.append(block)
    kept = [block for block in kept if block]
    return [
        block
        for number, block in enumerate(kept)
        if not is_empty_section(kept, number) or number == 0
    ]


def is_empty_section(blocks: Sequence[list[str]], number: int) -> bool:
    """A heading after which comes its equal or higher, or nothing."""
    heading = HEADING.match(blocks[number][0])
    if not heading:
        return False
    if number + 1 == len(blocks):
        return True
    following = HEADING.match(blocks[number + 1][0])
    return following is not None and len(following["level"]) <= len(heading["level"])
