"""python -m scripts.rename NAME: give the project a name of its own."""

import argparse
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.answers import ANSWERS, note_name
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
from scripts.parts.declared import load_parts, recognize

NAME_FORM = r"[a-z][a-z0-9]{1,14}"
"""No longer than what lines leave room for: a formatter breaks no text."""

KEPT = frozenset({LOCK, "LICENSE", ANSWERS})
"""Packages are locked again, the license names whose work this was first, and a copy where it is
from."""
SETTINGS = ".env"
"""What git does not have, and has the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """A file, or a link, with another path or another content."""

    file: str
    path: str
    content: str | None
    """The text, or the target of the link; none if it has neither, or these stay."""


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
    """Refuse a name that could not be distinguished from other words of the project.

    Raises:
        ChangeError: it has the wrong form, is a part of a word of a file or a path, mentions a part
            that `make without` would take out, or is the name of a package.
    """
    if not re.fullmatch(NAME_FORM, name):
        raise ChangeError(f"{name!r} must be 2 to 15 small letters and digits, a letter first")
    word = re.compile(re.escape(name), re.IGNORECASE)
    files = [file for file in list_tracked(root) if file not in KEPT]
    if path := next(filter(word.search, files), None):
        raise ChangeError(f"{name!r} already occurs, in the path {path}: take another name")
    for file, text in read_texts(root, files).items():
        if found := word.search(text):
            line = text.count("\n", 0, found.start()) + 1
            raise ChangeError(f"{name!r} already occurs, in {file}:{line}: take another name")
    for part in load_parts(root).values():
        if recognize([part], []).search(name):
            raise ChangeError(f"{name!r} would mention the part {part.name}: take another name")
    packages = tomllib.loads((root / LOCK).read_text())["package"]
    if name in {package["name"] for package in packages}:
        raise ChangeError(f"{name!r} is a package that the project uses: take another name")


def rename_project(root: Path, new: str, report: Report) -> None:
    """Replace the name in the checkout `root`, and renew what follows from its files.

    Raises:
        ChangeError: a step failed; no file was changed then.
    """
    old = read_name(root)
    plan = plan_renaming(root, old, new)
    paths = {path for each in plan for path in (each.file, each.path)}
    with unchanged_if_it_fails(root, paths):
        apply_renaming(root, plan)
        note_name(root, new)
        report(f"named it {new} instead of {old} in {len(plan)} files")
        run_steps(root, renew_all(), report)


def read_name(root: Path) -> str:
    """Return the name of the project, as it is written in paths and packages."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["name"])


def plan_renaming(root: Path, old: str, new: str) -> list[Renamed]:
    """Return the files that have the old name, with the new one in texts, paths and links."""
    forms = {form(old): form(new) for form in (str.lower, str.capitalize, str.upper)}
    files = [file for file in list_tracked(root) if file not in KEPT]
    files += [SETTINGS] if (root / SETTINGS).is_file() else []
    texts = read_texts(root, files)
    plan = []
    for file in files:
        link = root / file
        before = os.readlink(link) if link.is_symlink() else texts.get(file)
        after = None if before is None else replace_forms(before, forms)
        path = replace_forms(file, forms)
        if path != file or after != before:
            plan.append(Renamed(file=file, path=path, content=None if after == before else after))
    return plan


def apply_renaming(root: Path, plan: Iterable[Renamed]) -> None:
    """Move each file of the plan, and write its content."""
    for each in plan:
        target = root / each.path
        if each.path != each.file:
            target.parent.mkdir(parents=True, exist_ok=True)
            (root / each.file).rename(target)
            remove_empty((root / each.file).parent)
        if each.content is not None and target.is_symlink():
            target.unlink()
            target.symlink_to(each.content)
        elif each.content is not None:
            target.write_text(each.content)


def replace_forms(text: str, forms: Mapping[str, str]) -> str:
    for old, new in forms.items():
        text = text.replace(old, new)
    return text


if __name__ == "__main__":
    sys.exit(main())
