"""Cut entries out of settings, recipes and other text."""

import re
from collections.abc import Callable, Collection, Sequence

from scripts.parts.comments import INSTRUCTION, cut_comments
from scripts.parts.lines import drop_lines, indentation, join_continued

SECTION = re.compile(r"\[.*\]\s*(#.*)?$")
OPENED = re.compile(r"[\[{(]\s*(#.*)?$")
SYMBOL = re.compile(r"""[\[\]{},]|(?<!\w)(?:"(?:[^"\\]|\\.)*"|'[^']*')""")
"""A bracket, a comma, or a text in quotes, in which these mean nothing."""
COMMENTED = re.compile(r"""((?:[^"'#]|"(?:[^"\\]|\\.)*"|'[^']*'|(?<=\w)'|(?<!\s)#)*?)\s(#.*)""")
"""A line with a comment at its end."""
BRACKET = re.compile(r"[\[{]")
PAIR = re.compile(r"\s*[\w\"'.-]+(?:: | *= )")
ITEMS = re.compile(r"""\s*"[^"]*"(?:, *"[^"]*")+,?$""")
"""A line of several elements of a list."""
RULE = re.compile(r"(?P<targets>[\w./%$()-]+(?: [\w./%$()-]+)*) ?:(?![:=])")
SPECIAL = re.compile(r"\.[A-Z]")
"""A target that is an instruction, such as `.PHONY`."""
VARIABLE = re.compile(r"(?:export |override )?[\w.]+ *[:?+!]?=")


def cut_entries(text: str, pattern: re.Pattern[str]) -> str:
    """Return `text` without entries that matching lines begin, and what is indented below."""
    return cut(text, pattern, find_entry_end)


def cut_toml(text: str, pattern: re.Pattern[str]) -> str:
    """Cut as `cut_entries`; a header that matches takes its section with it."""

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
    lines = [cut_line(line, pattern) for line in cut_comments(text, pattern).split("\n")]
    dropped: set[int] = set()
    for number, line in enumerate(lines):
        if number in dropped or not pattern.search(line):
            continue
        last = find_end(lines, number)
        dropped |= set(range(number, last + 1))
        if not line.lstrip().startswith("#") and stands_alone(lines, last):
            dropped |= set(range(comment_above(lines, number), number))
        if (parent := find_emptied(lines, dropped, number)) is not None:
            dropped.add(parent)
    return drop_lines(lines, dropped)


def find_emptied(lines: Sequence[str], dropped: set[int], number: int) -> int | None:
    """Return the line of the key above a line that goes, if nothing else was below that key."""
    for above in reversed(range(number)):
        if lines[above].strip() and indentation(lines[above]) < indentation(lines[number]):
            below = range(above + 1, find_entry_end(lines, above) + 1)
            left = [each for each in below if lines[each].strip() and each not in dropped]
            return above if lines[above].rstrip().endswith(":") and not left else None
    return None


def cut_line(line: str, pattern: re.Pattern[str]) -> str:
    """Return a line without the comment at its end, and elements of its lists, that match."""
    if not pattern.search(line):
        return line
    code, comment = split_comment(line)
    if code.strip() and pattern.search(comment) and not INSTRUCTION.match(comment):
        line = code.rstrip()
    if ITEMS.match(line):
        kept = [each for each in split_elements(line.rstrip(",")) if not pattern.search(each)]
        return f"{','.join(kept)}{',' * line.endswith(',')}" if kept else line
    return cut_listed(line, pattern)


def split_comment(line: str) -> tuple[str, str]:
    """Return a line without the comment at its end, and that comment."""
    found = COMMENTED.fullmatch(line)
    return (found[1], found[2]) if found else (line, "")


def cut_listed(text: str, pattern: re.Pattern[str]) -> str:
    """Return `text` without those elements of its lists that match, unless all of one do.

    A list is what stands in brackets or braces, with commas between. Of a pair the key decides.
    """
    if not pattern.search(text):
        return text
    opening = BRACKET.search(text)
    if opening is None or (end := find_closing(text, opening.start())) is None:
        return text
    elements = split_elements(text[opening.end() : end])
    kept = [cut_element(element, pattern) for element in elements]
    left = [element for element in kept if element is not None]
    inner = ",".join(left if left else elements).strip() if left != elements else None
    listed = text[opening.start() : end + 1] if inner is None else opening[0] + inner + text[end]
    return text[: opening.start()] + listed + cut_listed(text[end + 1 :], pattern)


def cut_element(element: str, pattern: re.Pattern[str]) -> str | None:
    """Return an element without what matches in its own lists; None if it goes as a whole."""
    left = cut_listed(element, pattern)
    pair = PAIR.match(left)
    if not pattern.search(left) or (pair and not pattern.search(pair[0])):
        return left
    return None


def find_closing(text: str, opening: int) -> int | None:
    """Return where the bracket at `opening` is closed; None if it is not in this text."""
    depth = 0
    for found in SYMBOL.finditer(text, opening):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if depth == 0:
            return found.start()
    return None


def split_elements(text: str) -> list[str]:
    """Split a text at the commas that are in no bracket and no quotes."""
    elements, depth, start = [], 0, 0
    for found in SYMBOL.finditer(text):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if found[0] == "," and depth == 0:
            elements.append(text[start : found.start()])
            start = found.end()
    return [*elements, text[start:]]


def find_entry_end(lines: Sequence[str], first: int) -> int:
    """Return the last line of an entry: what is indented, or closes the bracket that it opens."""
    depth = indentation(lines[first])
    is_item = lines[first].lstrip().startswith("- ")
    is_key = lines[first].rstrip().endswith(":") and not is_item
    last = first
    for number in range(first + 1, len(lines)):
        if not lines[number].strip():
            continue
        listed = is_key and lines[number].startswith(" " * depth + "- ")
        if listed or indentation(lines[number]) > depth:
            last = number
        else:
            closes = OPENED.search(lines[first]) and lines[number].strip()[0] in "])}"
            return number if closes else last
    return last


def comment_above(lines: Sequence[str], number: int) -> int:
    """Return the first line of the comment directly above, or the line itself."""
    first = number
    while first and is_comment(lines[first - 1]):
        first -= 1
    return first


def is_comment(line: str) -> bool:
    return line.lstrip().startswith("#") and not line.startswith("#!")


def stands_alone(lines: Sequence[str], last: int) -> bool:
    """Say whether nothing follows directly that the comment above could be about, too."""
    return (
        last + 1 == len(lines)
        or not lines[last + 1].strip()
        or (indentation(lines[last + 1]) < indentation(lines[last]))
    )


def cut_dockerfile(text: str, pattern: re.Pattern[str]) -> str:
    """Return `text` without the comments and the instructions of one line that match."""
    lines = cut_comments(text, pattern).split("\n")
    single = [group[0] for group in join_continued(lines, range(len(lines))) if len(group) == 1]
    return drop_lines(lines, {number for number in single if pattern.search(lines[number])})


def cut_makefile(text: str, pattern: re.Pattern[str], verbs: Collection[str]) -> str:
    """Return `text` without the rules of `verbs`, lines of recipes that match, and empty rules.

    Variables and conditions stay.
    """
    lines = cut_comments(text, pattern).split("\n")
    gone = set(verbs)
    dropped: set[int] = set()
    rules = find_rules(lines)
    for head, last in rules:
        targets = RULE.match(lines[head])
        assert targets
        recipe = range(head + 1, last + 1)
        hit = {
            number
            for group in join_continued(lines, recipe)
            if any(pattern.search(lines[number]) for number in group)
            for number in group
        }
        if gone & set(targets["targets"].split()) or (hit and hit.issuperset(recipe)):
            gone |= set(targets["targets"].split())
            dropped |= set(range(comment_above(lines, head), last + 1))
        dropped |= hit
    return drop_lines(drop_words(lines, {head for head, _ in rules}, gone), dropped)


def find_rules(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the lines of the head and of the end of the recipe of each rule."""
    rules: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        if line.startswith("\t"):
            if rules and rules[-1][1] == number - 1:
                rules[-1] = (rules[-1][0], number)
        elif RULE.match(line) and not VARIABLE.match(line) and not SPECIAL.match(line):
            rules.append((number, number))
    return rules


def drop_words(lines: Sequence[str], heads: set[int], gone: set[str]) -> list[str]:
    """Return lines without targets that are gone among those that are phony or needed."""
    words = [re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w./-]) ?") for name in sorted(gone)]
    changed = list(lines)
    listed = False
    for number, line in enumerate(lines):
        listed = line.startswith(".PHONY") or (listed and lines[number - 1].endswith("\\"))
        if listed or number in heads:
            target, colon, rest = line.partition(":") if number in heads else ("", "", line)
            needed, mark, about = rest.partition("##")
            for word in words:
                needed = word.sub("", needed)
            changed[number] = (target + colon + needed + mark + about).rstrip()
    return changed
