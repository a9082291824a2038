"""Markdown: tables, code, JSON, and the parts of a page."""

import json
import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, or nothing if it has no rows. A row is one line."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(to_cell, line))} |\n" for line in lines) if lines[2:] else ""


def to_cell(text: str) -> str:
    """Return a text as one line. In code, a separator of cells needs no mark."""
    marked = re.sub(r"(`[^`]*`)|\|", lambda match: match[1] or "\\|", text)
    return " ".join(marked.split())


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def codes(words: Iterable[object]) -> str:
    return ", ".join(map(code, words))


def as_json(value: object) -> str:
    return f"```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```\n"


def join_parts(*parts: str) -> str:
    """Join the parts of a page that are not empty, with an empty line between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"
