"""Lines of a text: how deep they are, which belong together, and a text without some."""

from collections.abc import Iterable, Sequence


def drop_lines(lines: Iterable[str | None], dropped: set[int]) -> str:
    """Return a text without some of its lines, counted from 0; blank lines around them become one.

    A line that is None has become a part of the one before it.
    """
    kept: list[str] = []
    gap = False
    for number, line in enumerate(lines):
        if number in dropped:
            gap = True
        elif line is None or (gap and not line.strip() and (not kept or not kept[-1].strip())):
            continue
        else:
            gap = False
            kept.append(line)
    return "\n".join(kept)


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def join_continued(lines: Sequence[str], numbers: Iterable[int]) -> list[list[int]]:
    """Return the numbers of lines, those together that a backslash joins."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and lines[groups[-1][-1]].endswith("\\"):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups
