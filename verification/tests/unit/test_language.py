"""Texts use the words of the field: docstrings, strings, comments and documents are scanned.

A reader translates private idioms each time; the words below have a plain counterpart. Names of
code, and SQL that is applied already, are not scanned.
"""

import ast
import functools
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from scripts.changes import CHECKOUT, list_tracked

AVOIDED = {
    "nobody": (r"\b(?:nobody|somebody|anybody)\b(?!@)", "name the caller, writer or process"),
    "who": (
        r"^Who\s(?![^.?]*\?)|[.:;]\s+[Ww]ho\s(?![^.?]*\?)|\bwhoever\b|\b(?:by|for|to|from) who\s",
        "a caller that, a writer that",
    ),
    "anew": (r"\banew\b", "again, from scratch"),
    "beside": (r"\bbeside\b", "next to, compared with, besides"),
    "told": (r"\btold\b|\btells?\b", "reported, logged, returned, named, distinguished"),
    "for ever": (r"\bfor ever\b", "permanently"),
    "away": (r"\b(?:is|are|was|were|be|been) away\b", "unavailable, disconnected"),
    "set aside": (r"\bsets? (?:it |them )?aside\b", "dead-letter"),
    "take effect": (r"\b(?:take|takes|taken|took|taking) effect\b", "is applied"),
    "stand still": (r"\b(?:stands?|stood|standing) still\b", "has stopped"),
    "get on": (r"\b(?:get|gets|got|getting) on\b", "makes progress, continues"),
    "in the end": (r"\bin the end\b(?!-)", "finally, at the end"),
    "has not the": (r"\b(?:has|have|had) not the\b", "does not match, is missing"),
    "believable": (r"\bbelievable\b", "realistic"),
    "let go": (r"\b(?:is|are|be) let go\b", "is disconnected, is released"),
    "mean": (r"\bthat nobody can mean\b|\bno document of its\b", "out of range, does not match"),
}
"""Of each avoided expression: its pattern, without regard to case, and what to write instead."""

EXCEPTIONS = {
    ("infra/src/local_stack/postgres.py", "nobody"): "the name of a user of the system",
    ("infra/tests/unit/test_postgres.py", "nobody"): "the same",
    ("analytics-spark/tests/integration/test_reconcile.py", "nobody"): "the id of a user",
    ("benchmarks/delivery/consuming.py", "beside"): "a figure keeps its name",
    ("benchmarks/delivery/delivery_times.py", "beside"): "the same",
    ("benchmarks/delivery/draining.py", "beside"): "the same",
    ("benchmarks/delivery/placing.py", "beside"): "the same",
    ("verification/stress/campaign.py", "beside"): "the same",
}
"""File and rule, with the reason; a reviewer decides on each."""

NOT_SCANNED = re.compile(r"(^|/)vendor/|/migrations/|/test_language\.py$")
"""Files of other projects, migrations, which never change once applied, and this test."""


class Text(NamedTuple):
    line: int
    words: str


Reader = Callable[[str], Iterator[Text]]
"""From the content of a file to its texts."""


class Finding(NamedTuple):
    path: str
    line: int
    rule: str
    words: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words!r}: {AVOIDED[self.rule][1]}"


def test_texts_use_the_words_of_the_field() -> None:
    found = [finding for finding in all_findings() if not is_excepted(finding)]

    folders = Counter(finding.path.split("/")[0] for finding in found)
    assert not found, f"{dict(folders)}\n" + "\n".join(str(finding) for finding in found)


def test_every_exception_is_needed() -> None:
    needed = {(finding.path, finding.rule) for finding in all_findings()}

    assert EXCEPTIONS.keys() <= needed


def test_avoided_words_are_found_wherever_people_read_them() -> None:
    python = '"""It is told\n    late."""\nFAILED = f"{1} is away"  # nobody\n'
    samples = {
        "some.py": (python, {"told", "away", "nobody"}),
        "some.md": ("One paragraph.\n\nIn the\nend, `nobody`.\n", {"in the end"}),
        "some.sql": ("SELECT 'anew' -- set aside\n", {"set aside"}),
        "some.html": ("<p>It stands still</p>", {"stand still"}),
        "some.yml": ("nobody: 1 # whoever calls\n", {"who"}),
        "Makefile": ("nobody: ## for ever\n", {"for ever"}),
        "service.toml": ('users = { allows = "believable" }\n', {"believable"}),
    }

    for name, (text, rules) in samples.items():
        assert {finding.rule for finding in findings(name, text)} == rules, name


def test_plain_sentences_are_not_found() -> None:
    plain = '"""Who is the caller? A caller that waits; besides, the end-to-end tests."""\n'

    assert list(findings("some.py", plain)) == []


def is_excepted(finding: Finding) -> bool:
    return (finding.path, finding.rule) in EXCEPTIONS


@functools.cache
def all_findings() -> Sequence[Finding]:
    """Those of every file that git knows or would add."""
    return [
        finding
        for path in list_tracked(CHECKOUT)
        if reader_of(path) and not NOT_SCANNED.search(path)
        for finding in findings(path, (CHECKOUT / path).read_text())
    ]


def findings(path: str, content: str) -> Iterator[Finding]:
    """The avoided expressions in the texts of one file, each with the words around it."""
    read = reader_of(path)
    assert read, path
    for text in read(content):
        words = " ".join(text.words.split())
        for rule, (pattern, _) in AVOIDED.items():
            for match in re.finditer(pattern, words, re.IGNORECASE if rule != "who" else 0):
                around = words[max(0, match.start() - 30) : match.end() + 30]
                yield Finding(path, text.line, rule, around)


def reader_of(path: str) -> Reader | None:
    """How the texts of a file are read; None of a file that has none."""
    name = path.rsplit("/", 1)[-1]
    return READERS.get(name) or READERS.get(name.rsplit(".", 1)[-1])


def python_texts(content: str) -> Iterator[Text]:
    """Docstrings, strings and blocks of comments."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Text(node.lineno, node.value)
    block: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            if block and token.start[0] != block[-1].start[0] + 1:
                yield joined(block)
                block = []
            block.append(token)
    if block:
        yield joined(block)


def joined(block: list[tokenize.TokenInfo]) -> Text:
    return Text(block[0].start[0], " ".join(token.string.lstrip("# ") for token in block))


def paragraphs(content: str) -> Iterator[Text]:
    """Paragraphs of a document, without code between backticks."""
    line = 1
    for paragraph in re.split(r"(\n\s*\n)", content):
        yield Text(line, re.sub(r"`[^`\n]*`", "", paragraph))
        line += paragraph.count("\n")


def lines(pattern: str) -> Reader:
    """The part of each line that matches, such as a comment."""

    def read(content: str) -> Iterator[Text]:
        for number, line in enumerate(content.splitlines(), 1):
            for match in re.findall(pattern, line):
                yield Text(number, match)

    return read


COMMENT = r"(?:^|\s)#+ (.*)"

READERS: dict[str, Reader] = {
    "py": python_texts,
    "md": paragraphs,
    "html": paragraphs,
    "sql": lines(r"-- (.*)"),
    "toml": lines(r"(?:^|\s)(#.*|\".*\")"),
    "yml": lines(COMMENT),
    "yaml": lines(COMMENT),
    "cfg": lines(COMMENT),
    "Makefile": lines(COMMENT),
    "Dockerfile": lines(COMMENT),
    ".env.example": lines(COMMENT),
}
