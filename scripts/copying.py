"""python -m scripts.copying FOLDER ANSWERS: make a copy in the folder, as copier.yml asks for it.

Copier calls it in a clone of this repository, for each release that it compares. What a copy has
follows from the release and the answers, not from what is in the folder.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.answers import read_answers, write_answers
from scripts.changes import (
    CHECKOUT,
    ChangeError,
    copy_files,
    demand_committed,
    list_tracked,
    renew_all,
    report,
    run_command,
    run_git,
    run_steps,
)
from scripts.parts.declared import load_parts
from scripts.parts.removal import apply_cut, plan_cut
from scripts.rename import apply_renaming, demand_usable, plan_renaming, read_name
from scripts.upgrade.merge import mark_as_begun

TEMPLATE = "template"
"""The part that makes copies, which no copy has."""


def main() -> int:
    """0 if the copy is there; 1 with a line on standard error."""
    parser = argparse.ArgumentParser(prog="scripts.copying", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("answers", type=json.loads, help="as JSON: name, without, and of copier")
    arguments = parser.parse_args()
    is_update = os.environ.get("COPIER_OPERATION") == "update"
    return run_command(
        lambda: make_copy(CHECKOUT, arguments.folder, arguments.answers, is_update=is_update),
        interrupted="a copy that is not whole can be removed, and an update undone by git",
    )


def make_copy(root: Path, folder: Path, answers: Mapping[str, Any], *, is_update: bool) -> int:
    """Change the clone `root` into what a copy is, and put its files into the folder.

    Raises:
        ChangeError: `root` is not what copier cloned, the folder has files of another project, the
            name cannot be used, or a step failed; then the folder is as before.
    """
    name = str(answers["name"])
    demand_clone(root)
    if is_update:
        demand_same_name(folder, name)
    else:
        demand_empty(folder)
        demand_usable(root, name)
    # An update also makes a release that does not have all of them.
    left_out = [part for part in load_parts(root) if part in {TEMPLATE, *answers["without"]}]
    cut = plan_cut(root, left_out)
    if cut.left:
        raise ChangeError(f"{cut.names} cannot be left out: {cut.left[0]}")
    apply_cut(root, cut)
    report(f"without {cut.names}: {len(cut.removed)} files")
    plan = plan_renaming(root, read_name(root), name)
    apply_renaming(root, plan)
    report(f"named it {name} in {len(plan)} files")
    run_steps(root, renew_all(), report)
    if is_update:
        mark_as_begun(folder)
    fill(folder, root, list_tracked(root))
    write_answers(folder, answers)
    return 0


def demand_clone(root: Path) -> None:
    """Refuse to change a checkout in which people work: copier clones what has a `.git`.

    Raises:
        ChangeError: it has none, a branch is checked out, or there are uncommitted changes.
    """
    on_a_branch = run_git(root, "symbolic-ref", "--quiet", "HEAD").returncode == 0
    if on_a_branch or not (root / ".git").exists():
        raise ChangeError(f"{root} is no clone of a release: copy a repository, by its address")
    demand_committed(root)


def demand_same_name(folder: Path, name: str) -> None:
    """
    Raises:
        ChangeError: the project in the folder has another name, which its own files have, too.
    """
    if read_answers(folder).get("name", name) != name:
        raise ChangeError(f"first make rename name={name}, and commit it: then update")


def demand_empty(folder: Path) -> None:
    """
    Raises:
        ChangeError: it has files.
    """
    if folder.exists() and any(each.name != ".git" for each in folder.iterdir()):
        raise ChangeError(f"{folder} is not empty: choose a new folder")


def fill(folder: Path, root: Path, files: Sequence[str]) -> None:
    """Copy files to the same paths in the folder, and none outside of it.

    Raises:
        ChangeError: a path is a folder there, or leads out of it by a link; then nothing was
            copied.
    """
    for file in files:
        path = folder.resolve() / file
        if path.parent.resolve() != path.parent or (path.is_dir() and not path.is_symlink()):
            raise ChangeError(f"{path} is not a file of its own: move what is there, then again")
    copy_files(root, files, folder)


if __name__ == "__main__":
    sys.exit(main())
