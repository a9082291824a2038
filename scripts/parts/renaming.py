"""Give a copy of the project its own name."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from scripts.checkout_files import read_texts
from scripts.parts.declared import PartsError

NAME = re.compile(r"[a-z][a-z0-9]{1,7}")
"""No longer than the name that it replaces: otherwise lines would exceed their limit."""


def rename_project(root: Path, old: str, new: str, files: Iterable[str]) -> int:
    """Replace the name `old` in texts and paths by `new`; return how many files had it.

    Migrations keep it: what was applied to a database does not change.

    Raises:
        PartsError: the name cannot be used.
    """
    if not NAME.fullmatch(new):
        raise PartsError(f"{new!r} cannot be a name: 2 to 8 small letters and digits, as in myshop")
    forms = [(old, new), (old.capitalize(), new.capitalize()), (old.upper(), new.upper())]
    renamed = 0
    for file, text in read_texts(root, files, skipped=()):
        if PurePosixPath(file).suffix == ".sql":
            continue
        changed, path = text, file
        for before, after in forms:
            changed, path = changed.replace(before, after), path.replace(before, after)
        if changed != text or path != file:
            renamed += 1
            (root / file).unlink()
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(changed)
    return renamed
