"""The law of a span: it is the current one by `telemetry.current_span`, which keeps no text."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
HOME = CHECKOUT / "shared/src/shared/runtime/telemetry.py"
SKELETON = CHECKOUT / "scripts/new/skeleton"
FILES = sorted({*CHECKOUT.glob("*/src/**/*.py"), *SKELETON.glob("**/src/**/*.py")} - {HOME})
RECORDING_TEXT = {"start_as_current_span", "record_exception", "use_span", "add_event"}
"""Of the SDK: they record the text of an error, which can quote what a person has entered, as does
the block of a span that is not the current one."""


def find_faults(source: str) -> Iterator[str]:
    """The calls that break the law."""
    for node in ast.walk(ast.parse(source)):
        if get_name(node) in RECORDING_TEXT:
            yield f"line {getattr(node, 'lineno', 0)}: {get_name(node)}"
        block = node.context_expr if isinstance(node, ast.withitem) else None
        if isinstance(block, ast.Call) and get_name(block.func) == "start_span":
            yield f"line {block.lineno}: a block of start_span"


def get_name(node: ast.AST) -> str | None:
    """The last part of a name; None if it is none."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CHECKOUT)))
def test_no_span_records_the_text_of_an_error(file: Path) -> None:
    assert list(find_faults(file.read_text())) == []


@pytest.mark.parametrize(
    "call",
    [
        'tracer.start_as_current_span("a")',
        "use_span(span)",
        'tracer.start_span("a")',
        "span.record_exception(error)",
    ],
)
def test_other_calls_are_found(call: str) -> None:
    assert len(list(find_faults(f"with {call}:\n    pass\n"))) == 1
