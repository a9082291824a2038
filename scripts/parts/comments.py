"""Cut sentences out of docstrings and comments."""

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import TypeGuard

from scripts.parts.documents import LINE_CHARACTERS, cut_document
from scripts.parts.lines import indentation

QUOTES = '"""'
INSTRUCTION = re.compile(r"#\s*(noqa|type:|ruff:|fmt:|mypy:|pragma|shellcheck|syntax=|part:|!)")
"""A comment for a program, which is no sentence."""
ENTRIES = re.compile(r"[\w ]+:$")
"""The begin of a list of a docstring, such as `Raises:`."""


def cut_docstrings(text: str, pattern: re.Pattern[str]) -> str:
    """Return Python code without the sentences of its docstrings that match.

    A docstring that is all of a body stays, but that of a module.

    Raises:
        SyntaxError: `text` is no Python.
    """
    lines = text.split("\n")
    bodies = [
        (body, len(body) == 1 and not isinstance(node, ast.Module))
        for node in ast.walk(ast.parse(text))
        if isinstance(body := getattr(node, "body", None), list)
    ]
    found = [
        (node.lineno, node.end_lineno or node.lineno, is_alone)
        for body, is_alone in bodies
        for node in body
        if is_docstring(node) and lines[node.lineno - 1].lstrip().startswith(QUOTES)
    ]
    for first, last, is_alone in sorted(found, reverse=True):
        if any(pattern.search(line) for line in lines[first - 1 : last]):
            left = cut_docstring(lines[first - 1 : last], pattern)
            lines[first - 1 : last] = left or (lines[first - 1 : last] if is_alone else [])
    return "\n".join(lines)


def is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def cut_docstring(lines: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    depth = " " * indentation(lines[0])
    body = "\n".join(lines).strip().removeprefix(QUOTES).removesuffix(QUOTES).rstrip()
    head, line_end, tail = body.partition("\n")
    width = LINE_CHARACTERS - len(depth)
    blocks = [
        cut_entries(block, pattern)
        if ENTRIES.match(block.partition("\n")[0])
        else cut_document(block, pattern, width).strip()
        for block in (head + line_end + textwrap.dedent(tail)).split("\n\n")
    ]
    kept = "\n\n".join(block for block in blocks if block.strip())
    if not kept:
        return []
    text = textwrap.indent(kept, depth).strip()
    ends = QUOTES if "\n" not in text else f"\n{depth}{QUOTES}"
    return f"{depth}{QUOTES}{text}{ends}".split("\n")


def cut_entries(block: str, pattern: re.Pattern[str]) -> str:
    """Return a list of a docstring without the entries that match; nothing if all do."""
    head, *lines = block.split("\n")
    depth = min((indentation(line) for line in lines), default=0)
    entries: list[list[str]] = []
    for line in lines:
        if indentation(line) == depth or not entries:
            entries.append([line])
        else:
            entries[-1].append(line)
    kept = [entry for entry in entries if not pattern.search(" ".join(entry))]
    return "\n".join([head, *(line for entry in kept for line in entry)]) if kept else ""


def cut_code_comments(text: str, pattern: re.Pattern[str]) -> str:
    """Return Python code without the sentences of comments on lines of their own that match."""
    return cut_comments(text, pattern, find_comments(text))


def find_comments(text: str) -> dict[int, int]:
    """Return the column of the comment of each line of Python code that has one."""
    return {
        token.start[0]: token.start[1]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }


def cut_comments(
    text: str, pattern: re.Pattern[str], numbers: Collection[int] | None = None
) -> str:
    """Return `text` without the sentences that match of comments on lines of their own.

    `numbers` are those of the lines that can be comments, from 1 on; None: all can.
    """
    if not pattern.search(text):
        return text
    kept: list[str] = []

    def find_depth(numbered: tuple[int, str]) -> int | None:
        """Return how deep a comment is indented; None for a line that is none."""
        number, line = numbered
        stripped = line.lstrip()
        is_comment = stripped.startswith("# ") and not INSTRUCTION.match(stripped)
        is_comment = is_comment and (numbers is None or number in numbers)
        return indentation(line) if is_comment else None

    for depth, group in groupby(enumerate(text.split("\n"), 1), find_depth):
        lines = [line for _, line in group]
        kept += lines if depth is None else cut_comment(lines, pattern)
    return "\n".join(kept)


def cut_comment(comment: list[str], pattern: re.Pattern[str]) -> list[str]:
    if not any(pattern.search(line) for line in comment):
        return comment
    head = " " * indentation(comment[0]) + "# "
    text = "\n".join(line.strip().removeprefix("# ") for line in comment)
    left = cut_document(text, pattern, LINE_CHARACTERS - len(head)).strip("\n")
    return [(head + line).rstrip() for line in left.split("\n")] if left.strip() else []
