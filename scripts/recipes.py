"""The recipes of CONTRIBUTING.md: the example of each is a patch in docs/recipes.

    make recipe name=command                  # a copy of the checkout with the example in it
    make recipe name=command args=--write     # write the patch again, from that copy

Code that changes can leave a patch behind: the first command then marks what is in conflict, in the
copy; resolve it there, and the second command makes the patch current.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.checkout_files import copy_files

CHECKOUT = Path(__file__).resolve().parents[1]
PATCHES = CHECKOUT / "docs/recipes"
COPIES = CHECKOUT / ".run/recipes"

GIT_SECONDS_MAX = 120

GENERATED = (":!contracts/asyncapi.json", ":!contracts/schemas", ":!docs/requests")
"""What `make contracts` and `make generate` write is in no patch."""
DIFF = ("diff", "--cached", "--unified=2", "--abbrev=12", "HEAD", "--", ".", *GENERATED)

AUTHOR = ("-c", "user.name=recipes", "-c", "user.email=recipes@example.org")
PLAIN = ("-c", "commit.gpgsign=false", "-c", "core.autocrlf=false")


class GitFailed(Exception):
    """The message is what git printed."""


def find_patches() -> Mapping[str, Path]:
    """The patches by the name of their recipe."""
    return {path.stem: path for path in sorted(PATCHES.glob("*.patch"))}


def list_paths(patch: Path) -> list[str]:
    """The files that a patch changes or creates."""
    return re.findall(r"^\+\+\+ b/(.+)$", patch.read_text(), re.MULTILINE)


def git(root: Path, *arguments: str) -> str:
    """What git prints. Raises GitFailed."""
    ended = subprocess.run(
        ["git", *AUTHOR, *PLAIN, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=GIT_SECONDS_MAX,
    )
    if ended.returncode:
        raise GitFailed(ended.stderr + ended.stdout)
    return ended.stdout


def copy_checkout(root: Path) -> None:
    """A repository of its own with the files that people commit, as they are now, in one commit.

    It finds the objects of this one, so that git can merge a patch into files that have changed.
    """
    copy_files(CHECKOUT, root)
    git(root, "init", "--quiet")
    objects = git(CHECKOUT, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    (root / ".git/objects/info").mkdir(exist_ok=True)
    (root / ".git/objects/info/alternates").write_text(objects)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "the checkout")


def apply(root: Path, patch: Path, *, leave_out: Sequence[str] = ()) -> None:
    """Apply a patch to a copy, without the files to leave out.

    Raises:
        GitFailed: the code has changed where the patch changes it; nothing is applied.
    """
    git(root, "apply", *(f"--exclude={path}" for path in leave_out), str(patch))


def merge(root: Path, patch: Path) -> None:
    """Apply a patch, also to files that have changed since it was written.

    Raises:
        GitFailed: there are conflicts, which are marked in the files.
    """
    git(root, "apply", "--3way", str(patch))


def diff(root: Path) -> str:
    """All that differs in a copy from the checkout of then."""
    git(root, "add", "--all")
    return git(root, *DIFF)


def open_copy(root: Path, patch: Path) -> str | None:
    """A new copy with the patch in it; what git reports of conflicts, if there are some."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    copy_checkout(root)
    try:
        merge(root, patch)
    except GitFailed as error:
        return str(error)
    return None


def main() -> int:
    """0 if the copy or the patch was written, 1 if there is something to do by hand."""
    parser = argparse.ArgumentParser(
        prog="recipes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=find_patches())
    parser.add_argument("--write", action="store_true", help="write the patch from its copy")
    arguments = parser.parse_args()
    root, patch = COPIES / arguments.name, find_patches()[arguments.name]
    if arguments.write:
        return write(root, patch)
    conflicts = open_copy(root, patch)
    if conflicts is None:
        sys.stdout.write(f"{root} has the example; `git -C {root} diff HEAD` shows it\n")
        return 0
    sys.stderr.write(
        f"{conflicts}resolve what is marked in {root}, then"
        f" `make recipe name={arguments.name} args=--write`\n"
    )
    return 1


def write(root: Path, patch: Path) -> int:
    if not (root / ".git").is_dir():
        sys.stderr.write(f"there is no copy: `make recipe name={patch.stem}` makes it\n")
        return 1
    text = diff(root)
    if re.search(r"^\+(<<<<<<<|>>>>>>>) ", text, re.MULTILINE):
        sys.stderr.write(f"conflicts are left in {root}\n")
        return 1
    patch.write_text(text)
    sys.stdout.write(f"wrote {patch}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
