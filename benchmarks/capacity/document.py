"""docs/capacity.md: each command on the page is followed by what it prints."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "capacity.md"
BLOCK = re.compile(
    r"(?P<command>```sh\nmake plan (?P<options>[^\n]+)\n```\n\n```text\n)(?P<printed>.*?)(?=\n```)",
    re.DOTALL,
)


def render(text: str, answer: Callable[[Sequence[str]], str]) -> str:
    """The text with what `answer` prints for the options of each command."""

    def replace(block: re.Match[str]) -> str:
        options = [f"--{word}" for word in block["options"].split()]
        return block["command"] + answer(options)

    return BLOCK.sub(replace, text)
