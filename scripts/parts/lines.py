"""Lines of a text: how deep they are, which belong together, and a text without some."""

from collections.abc import Iterable, Sequence


def drop_lines(lines: Iterable[str], dropped: set[int]) -> str:
    """Return a text without some of its lines, counted from 1; blank lines around them become one.

    The lines have their ends.
    """
    kept: list[str] = []
    gap = False
    for number, line in enumerate(lines, 1):
        if number in dropped:
            gap = True
        elif gap and not line.strip() and (not kept or not kept[-1].strip()):
            continue
        else:
            gap = gap and not line
            kept += [line] if line else []
    while gap and kept and not kept[-1].strip():
        kept.pop()
    return "".join(kept)


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def join_continued(lines: Sequence[str], numbers: Iterable[int]) -> list[list[int]]:
    """Return the numbers of lines, counted from 0, those together that a backslash joins."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and lines[groups[-1][-1]].endswith("\\"):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups
