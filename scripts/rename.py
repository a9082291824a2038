"""python -m scripts.rename NAME: give the project a name of its own."""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from scripts.changes import (
    CHECKOUT,
    LOCK,
    ChangeError,
    Report,
    demand_committed,
    list_tracked,
    read_texts,
    remove_empty,
    renew_all,
    report,
    run_command,
    run_steps,
    unchanged_if_it_fails,
)

NAME_FORM = r"[a-z][a-z0-9]{1,14}"
"""No longer than what lines leave room for: a formatter breaks no text."""

KEPT = frozenset({LOCK, "LICENSE"})
"""The packages are locked again, and the license names whose work this was first."""


def main() -> int:
    """0 if the project has the name; 1 with a line on standard error, and nothing was changed."""
    parser = argparse.ArgumentParser(
        prog="make rename name=NAME",
        description="Replace the name of the project in all texts and paths of this checkout.",
        epilog="Until it is committed, git can undo it.",
    )
    parser.add_argument("name", help="2 to 15 small letters and digits")
    name = parser.parse_args().name
    return run_command(lambda: rename(name))


def rename(name: str) -> int:
    demand_usable(CHECKOUT, name)
    demand_committed(CHECKOUT)
    rename_project(CHECKOUT, name, report)
    report(f"done, it is {name}. Next: make check, make demo, git commit")
    return 0


def demand_usable(root: Path, name: str) -> None:
    """Refuse a name that later could not be distinguished from other words of the project.

    Raises:
        ChangeError: it has the wrong form, or is a part of a word of a file or a path.
    """
    if not re.fullmatch(NAME_FORM, name):
        raise ChangeError(f"{name!r} must be 2 to 15 small letters and digits, a letter first")
    word = re.compile(re.escape(name), re.IGNORECASE)
    files = [file for file in list_tracked(root) if file not in KEPT]
    if path := next(filter(word.search, files), None):
        raise ChangeError(f"{name!r} already occurs, in the path {path}: take a longer name")
    for file, text in read_texts(root, files).items():
        if found := word.search(text):
            line = text.count("\n", 0, found.start()) + 1
            raise ChangeError(f"{name!r} already occurs, in {file}:{line}: take a longer name")


def rename_project(root: Path, new: str, report: Report) -> None:
    """Replace the name in the checkout `root`, and renew what follows from its files.

    Raises:
        ChangeError: a step failed; no file was changed then.
    """
    old = read_name(root)
    files = list_tracked(root)
    with unchanged_if_it_fails(root, files):
        count = replace_name(root, files, old, new)
        report(f"named it {new} instead of {old} in {count} files")
        run_steps(root, renew_all(), report)


def read_name(root: Path) -> str:
    """Return the name of the project, as it is written in paths and packages."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["name"])


def replace_name(root: Path, files: Iterable[str], old: str, new: str) -> int:
    """Replace the name in the texts and paths of the files; return how many had it."""
    forms = {form(old): form(new) for form in (str.lower, str.capitalize, str.upper)}
    renamed = [file for file in files if file not in KEPT]
    texts = read_texts(root, renamed)
    count = 0
    for file in renamed:
        path, text = replace_forms(file, forms), replace_forms(texts.get(file, ""), forms)
        if path != file:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / file).rename(root / path)
            remove_empty((root / file).parent)
        if file in texts and text != texts[file]:
            (root / path).write_text(text)
        count += path != file or text != texts.get(file, "")
    return count


def replace_forms(text: str, forms: Mapping[str, str]) -> str:
    for old, new in forms.items():
        text = text.replace(old, new)
    return text


if __name__ == "__main__":
    sys.exit(main())
