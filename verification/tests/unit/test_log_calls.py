"""The law of a log call in an `except`: an error is passed as it is, and never made text there."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
FILES = sorted(CHECKOUT.glob("*/src/**/*.py"))
LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}
NAMING = {"because", "name_error", "name_cause", "to_class"}
"""Functions that make of an error, or of its reason, what can be logged."""


def find_faults(source: str) -> Iterator[str]:
    """The log calls that break the law."""
    for handler in ast.walk(ast.parse(source)):
        if isinstance(handler, ast.ExceptHandler):
            for call in ast.walk(handler):
                if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                    continue
                if ast.unparse(call.func.value) == "log" and call.func.attr in LEVELS:
                    fault = judge(call, call.func.attr, handler.name)
                    if fault:
                        yield f"line {call.lineno}: {fault}"


def judge(call: ast.Call, level: str, error: str | None) -> str | None:
    """What is wrong with a log call of a handler of `error`; None if nothing is."""
    named = [each for each in ast.walk(call) if calls_naming(each)]
    raised = [each for each in call.keywords if each.arg == "exc_info"]
    inside = {id(node) for each in (*named, *raised) for node in ast.walk(each)}
    for node in ast.walk(call):
        if isinstance(node, ast.Name) and node.id == error and id(node) not in inside:
            return f"{error} is passed without one of {', '.join(sorted(NAMING))}"
    if level == "exception" or named:
        return None
    return "no `extra=because(error)`, and no `log.exception`"


def calls_naming(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in NAMING


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CHECKOUT)))
def test_errors_are_logged_by_their_names(file: Path) -> None:
    assert list(find_faults(file.read_text())) == []


@pytest.mark.parametrize(
    "call",
    [
        'log.warning("gone: %r", error)',
        'log.warning(f"gone: {error}")',
        'log.warning("gone")',
        'log.exception("gone: %s", error)',
        'log.warning("gone", extra={"error": str(error)})',
    ],
)
def test_other_calls_are_found(call: str) -> None:
    source = f"try:\n    pass\nexcept OSError as error:\n    {call}\n"
    assert len(list(find_faults(source))) == 1
