"""What a document lets its readers type, and what it shows of the output."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ANYTHING = "…"
BLOCK = re.compile(
    r"^```(sh|diff)\n(.+?)^```$(?:\n\n^```text\n(.+?)^```$)?", re.DOTALL | re.MULTILINE
)


class Step(NamedTuple):
    """A block of commands (`sh`) or an edit (`diff`), and what the commands print."""

    kind: str
    content: str
    shown: str

    @property
    def title(self) -> str:
        """Its commands in one line, or the first file of the edit."""
        if self.kind == "diff":
            return f"edit {self.content.split()[1].removeprefix('a/')}"
        return "; ".join(self.content.strip().splitlines())[:90]


def read_steps(document: Path) -> Sequence[Step]:
    """All of a document, in their order."""
    return [Step(*found) for found in BLOCK.findall(document.read_text())]


def to_pattern(line: str) -> str:
    """Of a line with `…` for anything."""
    return "^" + ".*".join(map(re.escape, line.split(ANYTHING))) + "$"
