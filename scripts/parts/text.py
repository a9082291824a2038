"""Cut entries out of settings, recipes and other text."""

import re
from collections.abc import Callable, Sequence

SECTION = re.compile(r"\[.*\]\s*(#.*)?$")
OPENED = re.compile(r"[\[{(]\s*(#.*)?$")
TARGET = re.compile(r"(?P<target>[a-z0-9 -]+):(?!=)")


def drop_lines(text: str, dropped: set[int]) -> str:
    """`text` without some lines, counted from 1, and without the blank lines that this doubles."""
    kept: list[str] = []
    gap = False
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if number in dropped:
            gap = True
        elif gap and not line.strip() and (not kept or not kept[-1].strip()):
            continue
        else:
            gap = False
            kept.append(line)
    while gap and kept and not kept[-1].strip():
        kept.pop()
    return "".join(kept)


def cut_entries(text: str, pattern: re.Pattern[str]) -> str:
    """`text` without the entries that matching lines begin, and all that is indented below them."""
    return cut(text, pattern, find_entry_end)


def cut_toml(text: str, pattern: re.Pattern[str]) -> str:
    """As `cut_entries`; a header that matches takes its section with it."""

    def find_end(lines: Sequence[str], first: int) -> int:
        if not SECTION.match(lines[first]):
            return find_entry_end(lines, first)
        last = first
        while last + 1 < len(lines) and not SECTION.match(lines[last + 1]):
            last += 1
        while last > first and (not lines[last].strip() or lines[last].startswith("#")):
            last -= 1
        return last

    return cut(text, pattern, find_end)


def cut(text: str, pattern: re.Pattern[str], find_end: Callable[[Sequence[str], int], int]) -> str:
    lines = text.splitlines()
    dropped: set[int] = set()
    for number, line in enumerate(lines):
        if number + 1 in dropped or not pattern.search(line):
            continue
        last = find_end(lines, number)
        dropped |= set(range(number + 1, last + 2))
        if not line.lstrip().startswith("#") and stands_alone(lines, last):
            dropped |= {above + 1 for above in range(comment_above(lines, number), number)}
    return drop_lines(text, dropped)


def find_entry_end(lines: Sequence[str], first: int) -> int:
    """The last line that is indented deeper than the first, or closes the bracket that it opens."""
    depth = indentation(lines[first])
    last = first
    for number in range(first + 1, len(lines)):
        if not lines[number].strip():
            continue
        if indentation(lines[number]) > depth:
            last = number
        else:
            closes = OPENED.search(lines[first]) and lines[number].strip()[0] in "])}"
            return number if closes else last
    return last


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def comment_above(lines: Sequence[str], number: int) -> int:
    """The first line of the comment directly above, or the line itself."""
    first = number
    while first and is_comment(lines[first - 1]):
        first -= 1
    return first


def is_comment(line: str) -> bool:
    return line.lstrip().startswith("#") and not line.startswith("#!")


def stands_alone(lines: Sequence[str], last: int) -> bool:
    """Nothing follows directly that the comment above could be about, too."""
    return (
        last + 1 == len(lines)
        or not lines[last + 1].strip()
        or (indentation(lines[last + 1]) < indentation(lines[last]))
    )


def cut_dockerfile(text: str, pattern: re.Pattern[str]) -> str:
    """`text` without the comments and the instructions of one line that match."""
    lines = text.splitlines()
    groups = join_continued(lines, range(1, len(lines) + 1))
    single = [group[0] for group in groups if len(group) == 1]
    return drop_lines(text, {number for number in single if pattern.search(lines[number - 1])})


def cut_patch(text: str, pattern: re.Pattern[str]) -> str:
    """`text` without the files whose paths match, and without hunks in which a line does."""
    kept: list[str] = []
    for file in re.split(r"^(?=diff --git )", text, flags=re.MULTILINE):
        head, *hunks = re.split(r"^(?=@@ )", file, flags=re.MULTILINE)
        if pattern.search(head):
            continue
        left = [hunk for hunk in hunks if not pattern.search(hunk)]
        if left or not hunks:
            kept += [head, *left]
    return "".join(kept)


def cut_makefile(text: str, pattern: re.Pattern[str]) -> str:
    """`text` without the lines of recipes that match, and targets that do or have nothing left."""
    lines = text.splitlines()
    blocks: list[list[int]] = [[]]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            blocks.append([])
        else:
            blocks[-1].append(number)
    dropped: set[int] = set()
    gone: set[str] = set()
    for block in blocks:
        heads = {number: found for number in block if (found := TARGET.match(lines[number - 1]))}
        commands = [number for number in block if lines[number - 1].startswith("\t")]
        logical = join_continued(lines, block)
        hit = {number for group in logical if matches(lines, group, pattern) for number in group}
        if not hit:
            continue
        head = min(heads, default=0)
        if head and (head in hit or (commands and set(commands) <= hit)):
            dropped |= set(block)
            gone |= set(heads[head]["target"].split())
        else:
            dropped |= hit
    return drop_words(drop_lines(text, dropped), gone)


def matches(lines: Sequence[str], group: Sequence[int], pattern: re.Pattern[str]) -> bool:
    """Whether one of the lines that a backslash joins does; a list of phony targets never does."""
    is_list = lines[group[0] - 1].startswith(".PHONY")
    return not is_list and any(pattern.search(lines[number - 1]) for number in group)


def join_continued(lines: Sequence[str], block: Sequence[int]) -> list[list[int]]:
    """The lines of a block, those together that a backslash joins."""
    groups: list[list[int]] = []
    for number in block:
        if groups and lines[groups[-1][-1] - 1].endswith("\\"):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def drop_words(text: str, gone: set[str]) -> str:
    """`text` that lists no target which is gone, neither as phony nor as needed by another."""
    lines = text.splitlines(keepends=True)
    listed = False
    for number, line in enumerate(lines):
        target = TARGET.match(line)
        listed = line.startswith(".PHONY") or (listed and lines[number - 1].endswith("\\\n"))
        if listed or target:
            head, mark, rest = line.partition("##")
            for name in gone:
                head = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])(?!:) ?", "", head)
            lines[number] = head + mark + rest
    return "".join(lines)
