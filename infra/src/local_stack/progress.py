"""The output of a verb for people: plain lines, with colours only on a terminal."""

import os
import sys
from collections.abc import Sequence
from enum import Enum

from shared.runtime.progress import CLEAR_LINE


class Tone(Enum):
    """Terminal colours by what they mean."""

    PLAIN = ""
    GOOD = "\x1b[32m"
    POOR = "\x1b[33m"
    BAD = "\x1b[31m"


def is_terminal() -> bool:
    return sys.stdout.isatty()


def add_colour(text: str, tone: Tone) -> str:
    if tone is Tone.PLAIN or not is_terminal() or "NO_COLOR" in os.environ:
        return text
    return f"{tone.value}{text}\x1b[0m"


def tell(text: str, tone: Tone = Tone.PLAIN) -> None:
    """One line that stays."""
    clear = CLEAR_LINE if is_terminal() else ""
    sys.stdout.write(f"{clear}{add_colour(text, tone)}\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """One line on standard error, in the form that every failure has."""
    sys.stderr.write(f"hometown: {text}\n")
    sys.stderr.flush()


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as their widest cell."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def duration(seconds: float) -> str:
    """3 min 10 s"""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
