"""Cut statements, elements and sentences out of Python code."""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from scripts.parts.documents import cut_block, split_blocks
from scripts.parts.text import comment_above, drop_lines, indentation

MARK = re.compile(r"\s*# part: [\w, -]+$")
WIDTH = 100
QUOTES = '"""'
UNITS = (ast.stmt, ast.ExceptHandler, ast.match_case)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Pair:
    """A key of a dictionary and its value."""

    def __init__(self, key: ast.expr, value: ast.expr) -> None:
        self.lineno, self.col_offset = key.lineno, key.col_offset
        self.end_lineno, self.end_col_offset = value.end_lineno, value.end_col_offset


Element = ast.expr | ast.keyword | Pair
Node = Element | ast.stmt | ast.ExceptHandler | ast.match_case


def cut_python(text: str, pattern: re.Pattern[str], whole_functions: bool) -> str:
    """`text` without what its matching lines begin: a statement, or an element of a list.

    Of comments and docstrings the sentences go. With `whole_functions` a function goes in which any
    line of its own matches, as a test does. What uses a name that nothing binds any more goes, too.

    Raises:
        SyntaxError: `text` is no Python.
    """
    text = cut_comments(cut_docstrings(text, pattern), pattern)
    lines = text.splitlines(keepends=True)
    hits = {number for number, line in enumerate(lines, 1) if pattern.search(line)}
    if not hits:
        return text
    tree = ast.parse(text)
    dropped: set[int] = set()
    while hits:
        for first, last in find_units(tree, hits, lines, whole_functions):
            dropped |= set(range(comment_above(lines, first - 1) + 1, last + 1))
        dropped |= {number for node in find_emptied(tree, dropped) for number in spanned(node)}
        hits = {
            node.lineno
            for node in find_uses(tree, find_unbound(tree, dropped))
            if node.lineno not in dropped
        }
    return drop_lines(text, dropped)


def find_unbound(tree: ast.Module, dropped: set[int]) -> set[str]:
    """The names of the module that only dropped statements bind."""
    bound: dict[bool, set[str]] = {True: set(), False: set()}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            bound[node.lineno in dropped] |= set(find_bound(node))
    return bound[True] - bound[False]


def find_bound(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from (each.asname or each.name.partition(".")[0] for each in node.names)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign(targets=targets):
            yield from (each.id for each in targets if isinstance(each, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def find_uses(tree: ast.Module, names: set[str]) -> Iterator[ast.Name | ast.arg]:
    """Where names are read, or asked for as fixtures are."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in names:
                yield node
            case ast.arg(arg=name) if name in names:
                yield node


def cut_docstrings(text: str, pattern: re.Pattern[str]) -> str:
    """`text` without the sentences of its docstrings that match.

    Raises:
        SyntaxError: `text` is no Python.
    """
    lines = text.splitlines()
    found = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt)
        and is_docstring(node)
        and lines[node.lineno - 1].lstrip().startswith(QUOTES)
    ]
    for node in sorted(found, key=lambda node: -node.lineno):
        first, last = bounds(node)
        if any(pattern.search(line) for line in lines[first - 1 : last]):
            lines[first - 1 : last] = cut_docstring(lines[first - 1 : last], pattern)
    return "\n".join(lines) + "\n"


def cut_docstring(lines: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    depth = " " * indentation(lines[0])
    body = "\n".join(lines).strip().removeprefix(QUOTES).removesuffix(QUOTES).rstrip()
    head, _, tail = body.partition("\n")
    blocks = split_blocks([head, *textwrap.dedent(tail).splitlines()])
    kept = [block for block in (cut_block(block, pattern) for block in blocks) if block]
    if not kept:
        return []
    text = textwrap.indent("\n\n".join("\n".join(block) for block in kept), depth).strip()
    ends = QUOTES if "\n" not in text else f"\n{depth}{QUOTES}"
    return f"{depth}{QUOTES}{text}{ends}".splitlines()


def cut_comments(text: str, pattern: re.Pattern[str]) -> str:
    """`text` without the sentences that match of comments on lines of their own."""
    kept: list[str] = []
    for depth, group in groupby(text.splitlines(), find_comment_depth):
        lines = list(group)
        kept += lines if depth is None else cut_comment(lines, pattern)
    return "\n".join(kept) + "\n"


def find_comment_depth(line: str) -> int | None:
    """How deep a line that is a comment is indented; None of any other line."""
    return indentation(line) if line.lstrip().startswith("# ") else None


def cut_comment(comment: list[str], pattern: re.Pattern[str]) -> list[str]:
    if not any(pattern.search(line) for line in comment):
        return comment
    head = " " * indentation(comment[0]) + "# "
    words = cut_block([line.strip().removeprefix("# ") for line in comment], pattern)
    return textwrap.wrap(" ".join(words), WIDTH, initial_indent=head, subsequent_indent=head)


def find_units(
    tree: ast.Module, hits: set[int], lines: Sequence[str], whole_functions: bool
) -> Iterator[tuple[int, int]]:
    """First and last line of each unit that a hit is in."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, UNITS)]
    for hit in sorted(hits):
        marked = MARK.search(lines[hit - 1])
        if whole_functions and not marked:
            functions = [
                node
                for node in nodes
                if isinstance(node, FUNCTIONS) and node.lineno <= hit <= bounds(node)[1]
            ]
            if functions:
                yield bounds(max(functions, key=lambda node: node.lineno))
                continue
        headed = [node for node in nodes if hit in header(node)]
        if not headed:
            continue
        innermost = min(headed, key=lambda node: (len(header(node)), -first_line(node)))
        elements = [
            node
            for node in walk_elements(innermost)
            if hit in spanned(node) and has_own_lines(node, lines)
        ]
        if hit == first_line(innermost) or not elements:
            yield bounds(innermost)
        else:
            yield with_parentheses(min(elements, key=lambda node: len(spanned(node))), lines)


def walk_elements(statement: ast.AST) -> Iterator[Element]:
    """What stands in lists, sets, tuples, dictionaries and calls."""
    for node in ast.walk(statement):
        match node:
            case ast.List() | ast.Set() | ast.Tuple():
                yield from node.elts
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    yield Pair(key or value, value)
            case ast.Call():
                yield from node.args
                yield from node.keywords


def has_own_lines(node: Element, lines: Sequence[str]) -> bool:
    """Nothing but the comma after it shares its first and its last line."""
    first, last = bounds(node)
    before = lines[first - 1][: node.col_offset].strip()
    behind = lines[last - 1].encode()[node.end_col_offset or 0 :].decode()
    return before in ("", "**") and behind.partition("#")[0].strip() in ("", ",")


def with_parentheses(node: Element, lines: Sequence[str]) -> tuple[int, int]:
    """The lines of an element, and those of parentheses around it or its value."""
    first, last = bounds(node)
    while lines[last].strip() in (")", "),") and opens_more(lines[first - 1 : last]):
        last += 1
    return first, last


def opens_more(lines: Sequence[str]) -> bool:
    text = "".join(lines)
    return text.count("(") > text.count(")")


def find_emptied(tree: ast.Module, dropped: set[int]) -> Iterator[ast.stmt]:
    """Statements of whose bodies nothing but a docstring is left."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = [each for each in read_body(node) if not is_docstring(each)]
            if body and all(set(spanned(each)) <= dropped for each in body):
                yield node


def read_body(node: Node) -> list[ast.stmt]:
    body = getattr(node, "body", [])
    assert isinstance(body, list)
    return body


def is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def header(node: Node) -> range:
    """The lines of a statement without those of its body."""
    body = read_body(node)
    return range(first_line(node), first_line(body[0]) if body else bounds(node)[1] + 1)


def spanned(node: Node) -> range:
    first, last = bounds(node)
    return range(first, last + 1)


def bounds(node: Node) -> tuple[int, int]:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno, bounds(node.body[-1])[1]
    return first_line(node), node.end_lineno or node.lineno


def first_line(node: Node) -> int:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])
