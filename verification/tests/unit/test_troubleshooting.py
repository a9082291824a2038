"""The page on troubleshooting quotes what programs say: no symptom is of an earlier wording."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from scripts.changes import CHECKOUT, list_tracked
from scripts.documentation.reference import http
from scripts.openapi import list_operations

PAGE = (CHECKOUT / "docs/troubleshooting.md").read_text()
MESSAGES = re.findall(r'"([^"\n]+)"', PAGE)
CODES = re.findall(r"^\| ([45]\d\d) `([a-z-]+)` \|", PAGE, re.MULTILINE)
SETTINGS = sorted(set(re.findall(r"`([A-Z][A-Z_]+_[A-Z_]+)(?:=[^`]*)?`", PAGE)))
REASONS = re.findall(r"`([a-z]+(?:-[a-z]+)+)`", PAGE)
ANYTHING = "…"
OF_SYSTEMS = {"HTTPS_PROXY", "PYENV_VERSION"}


@cache
def read_texts() -> frozenset[str]:
    """Return the texts of all programs; `…` stands for what they put in."""
    return frozenset(
        text
        for file in list_tracked(CHECKOUT)
        if file.endswith(".py") and "tests/" not in file
        for text in find_texts(ast.parse((CHECKOUT / file).read_text()))
    )


def find_texts(tree: ast.AST) -> Iterator[str]:
    """Yield strings, but what describes a module or a function: that of an exception is printed."""
    described = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=parts):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else ANYTHING
                    for part in parts
                )
            case ast.Constant(value=str(text)) if id(node) not in described:
                yield text


def is_said(message: str) -> bool:
    """Return whether a program says this: whole, or as a part of a longer line."""
    parts = message.split(ANYTHING)
    pattern = re.compile(".*".join(map(re.escape, parts)))
    found = (text for text in read_texts() if max(parts, key=len) in text)
    return any(pattern.search(text) for text in found)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_that_a_program_prints(message: str) -> None:
    assert is_said(message)


@pytest.mark.parametrize(("status", "code"), CODES)
def test_a_code_is_one_of_a_problem_with_this_status(status: str, code: str) -> None:
    refusals = {
        refusal
        for document in http.read_documents().values()
        for operation in list_operations(document)
        for refusal in operation.refusals
    }

    assert (int(status), code) in refusals


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_is_one_of_a_program(reason: str) -> None:
    assert reason in read_texts()


@pytest.mark.parametrize("name", SETTINGS)
def test_a_variable_is_one_that_is_read(name: str) -> None:
    known = (CHECKOUT / ".env.example").read_text() + (CHECKOUT / "Makefile").read_text()

    assert name in OF_SYSTEMS or re.search(rf"\b{name} ?\??=", known)


def test_messages_codes_and_variables_are_read_from_the_page() -> None:
    """The negative control."""
    assert len(MESSAGES) > 15
    assert len(CODES) > 6
    assert len(SETTINGS) > 6
    assert len(REASONS) > 6
    assert not is_said("port … was stolen")
