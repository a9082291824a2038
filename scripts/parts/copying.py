"""What `copier copy` and `copier update` do once the files are there: see copier.yml."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.checkout_files import list_files
from scripts.parts.declared import PartsError, choose_parts, load_parts
from scripts.parts.removal import apply_cut, plan_cut, renew
from scripts.parts.renaming import rename_project
from scripts.steps import Report

ANSWERS = ".copier-answers.yml"
PROJECT = "hometown"


def finish_copy(root: Path, answers: Mapping[str, object], report: Report) -> None:
    """Take out the parts that are not kept, rename the project, and write down the answers.

    Copier makes a copy of the old and of the new release in this way, and compares: what this does
    follows from the answers and the files alone.

    Raises:
        PartsError: an answer is wrong, or a step failed.
    """
    left_out = read_left_out(root, answers)
    if left_out:
        cut = plan_cut(root, left_out)
        apply_cut(root, cut)
        report(f"left out: {cut.names}")
    name = str(answers["name"])
    if name != PROJECT:
        count = rename_project(root, PROJECT, name, list_files(root))
        report(f"named it {name} in {count} files")
    if left_out or name != PROJECT:
        renew(root, report)
    # JSON is YAML, and needs no library.
    (root / ANSWERS).write_text(json.dumps(answers, indent=2) + "\n")


def read_left_out(root: Path, answers: Mapping[str, object]) -> Sequence[str]:
    """
    Raises:
        PartsError: the answers name a part that there is not, or keep one without what it needs.
    """
    parts = load_parts(root)
    kept = answers["keep"]
    if not isinstance(kept, list) or (unknown := sorted(set(kept) - set(parts))):
        raise PartsError(f"keep must be a list of parts, of {', '.join(parts)}: not {unknown}")
    left_out = [name for name in parts if name not in kept]
    if too_much := [part for part in choose_parts(parts, left_out) if part.name in kept]:
        needed = ", ".join(sorted(set(too_much[0].needs) & set(left_out)))
        raise PartsError(f"{too_much[0].name} needs {needed}: keep that, too")
    return left_out
