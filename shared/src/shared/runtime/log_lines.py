"""The form of a line of a log, for those that read it: JSON, or text for people."""

import json
from collections.abc import Mapping
from typing import Any

TIME, LEVEL, LOGGER, MESSAGE = "time", "level", "logger", "message"
"""The fields of each line."""
EXCEPTION = "exception"

COLORS = {"warning": "\033[33m", "error": "\033[31m", "critical": "\033[31m"}
DIM, PLAIN = "\033[2m", "\033[0m"


def parse(text: str) -> Mapping[str, Any] | None:
    """The fields of a line of JSON; None for a line of another program."""
    try:
        line = json.loads(text) if text.startswith("{") else None
    except ValueError:
        return None
    return line if isinstance(line, dict) and {TIME, LEVEL, MESSAGE} <= line.keys() else None


def to_text(line: Mapping[str, Any], *, colors: bool) -> str:
    """A line for people; an exception follows it."""
    rest = " ".join(
        f"{name}={value}"
        for name, value in line.items()
        if name not in {TIME, LEVEL, MESSAGE, EXCEPTION}
    )
    level = f"{line[LEVEL].upper():<8}"
    if colors:
        level, rest = f"{COLORS.get(line[LEVEL], '')}{level}{PLAIN}", f"{DIM}{rest}{PLAIN}"
    text = f"{line[TIME]} {level} {line[MESSAGE]} {rest}"
    return f"{text}\n{line[EXCEPTION].rstrip()}" if EXCEPTION in line else text
