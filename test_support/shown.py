"""What a document lets its readers type, and what it shows of the output."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

ANYTHING = "…"
OUTSIDE_NUMBER = r"(?:(?<!\d)|(?!\d))"
"""Matches where not both neighbours are digits: a shown 0 is not the end of a printed 10."""
BLOCK = re.compile(
    r"^```(sh|diff)\n(.+?)^```$(?:\n\n^```text\n(.+?)^```$)?", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Block:
    """Commands (`sh`) or an edit (`diff`), and lines that the commands print."""

    kind: str
    content: str
    shown: str

    @property
    def title(self) -> str:
        """The first line of the commands, or the first file of the edit."""
        if self.kind == "diff":
            return f"edit {self.content.split()[1].removeprefix('a/')}"
        return self.content.partition("\n")[0].partition("  #")[0]

    def find_missing(self, printed: str) -> Sequence[str]:
        """Return the shown lines that were not printed; `…` is anything but a part of a number."""
        return [
            line
            for line in self.shown.splitlines()
            if not re.search(to_pattern(line), printed, re.MULTILINE)
        ]


def read_blocks(text: str) -> Sequence[Block]:
    """Read the blocks of a document, in its order.

    Raises:
        AssertionError: a block has another form.
    """
    blocks = [Block(*found) for found in BLOCK.findall(text)]
    fences = sum(1 + bool(block.shown) for block in blocks)
    assert fences == len(re.findall(r"^```$", text, re.MULTILINE)), "a block has another form"
    return blocks


def to_pattern(line: str) -> str:
    """Return the regular expression of a shown line."""
    anything = f"{OUTSIDE_NUMBER}.*{OUTSIDE_NUMBER}"
    return "^" + anything.join(map(re.escape, line.split(ANYTHING))) + "$"
