"""`.copier-answers.yml`: what a copy of this repository answered, and what it was copied from."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from scripts.changes import ChangeError

ANSWERS = ".copier-answers.yml"
DECLARED = frozenset(["template", "lessons", "kubernetes", "faust"])
"""The parts of this repository: copier asks for all but the first, and refuses an update with any
other answer. So a part that a copy has declared itself is no answer."""


def write_answers(root: Path, answers: Mapping[str, Any]) -> None:
    """Write them as JSON, which is YAML."""
    (root / ANSWERS).write_text(json.dumps(answers, indent=2, ensure_ascii=False) + "\n")


def note_name(root: Path, name: str) -> None:
    """Let an update of the copy have the name, too, if this is a copy."""
    if answers := read_answers(root):
        write_answers(root, {**answers, "name": name})


def note_left_out(root: Path, names: Iterable[str]) -> None:
    """Let an update of the copy leave the parts out, too, if this is a copy."""
    if answers := read_answers(root):
        left_out = sorted({*answers["without"], *DECLARED.intersection(names)})
        write_answers(root, {**answers, "without": left_out})


def read_answers(root: Path) -> dict[str, Any]:
    """Return the answers; none if this is no copy.

    Raises:
        ChangeError: they were edited, and are none any more.
    """
    path = root / ANSWERS
    return parse_answers(path.read_text()) if path.exists() else {}


def parse_answers(text: str) -> dict[str, Any]:
    """Return the answers that a text has.

    Raises:
        ChangeError: it has none.
    """
    try:
        answers = yaml.safe_load(text)
    except yaml.YAMLError:
        answers = None
    if not isinstance(answers, dict) or not isinstance(answers.get("without"), list):
        raise ChangeError(f"{ANSWERS} has no list `without`: bring back the file that git has")
    return answers
