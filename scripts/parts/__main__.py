"""python -m scripts.parts NAME: leave parts of the project out."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from scripts.parts.copying import finish_copy
from scripts.parts.declared import PartsError, load_parts
from scripts.parts.removal import MENTIONS_SHOWN_MAX, find_mentions, plan_cut, remove_parts

CHECKOUT = Path(__file__).resolve().parents[2]


def main() -> int:
    """0 if the parts are out; 1 with one line on standard error."""
    parser = argparse.ArgumentParser(
        prog="make without",
        description="Take parts out of this checkout, with every line that mentions them.",
        epilog="Without a part, list them. `git checkout .` undoes it until it is committed.",
    )
    parser.add_argument("part", nargs="*", help="its name, or several with commas between")
    parser.add_argument("--dry-run", action="store_true", help="show what would go")
    parser.add_argument("--force", action="store_true", help="also with uncommitted changes")
    parser.add_argument("--answers", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = [name for names in arguments.part for name in names.split(",") if name]
    try:
        if arguments.answers:
            finish_copy(CHECKOUT, arguments.answers, report)
            return 0
        if not names:
            list_parts(CHECKOUT)
            return 0
        if arguments.dry_run:
            show_plan(CHECKOUT, names)
            return 0
        if not arguments.force:
            demand_committed(CHECKOUT)
        cut = remove_parts(CHECKOUT, names, report)
        mentions = find_mentions(CHECKOUT, cut.pattern)
    except PartsError as error:
        sys.stderr.write(f"hometown: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("hometown: interrupted; `git checkout .` undoes what was done\n")
        return 1
    if mentions:
        report(f"{len(mentions)} lines still mention {cut.names}:")
        for mention in mentions[:MENTIONS_SHOWN_MAX]:
            report(f"  {mention}")
        return 1
    report(f"{cut.names} is out. Next: make check, make demo, git commit")
    return 0


def list_parts(root: Path) -> None:
    for part in load_parts(root).values():
        needs = f" (needs {', '.join(part.needs)})" if part.needs else ""
        report(f"  {part.name:14} {part.title}{needs}")


def show_plan(root: Path, names: list[str]) -> None:
    cut = plan_cut(root, names)
    for file in cut.removed:
        report(f"  - {file}")
    for file, text in cut.changed.items():
        before = len((root / file).read_text().splitlines())
        report(f"  ~ {file} ({len(text.splitlines()) - before:+} lines)")


def demand_committed(root: Path) -> None:
    """
    Raises:
        PartsError: a file has changes that `git checkout .` could not bring back.
    """
    ended = subprocess.run(
        ["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True
    )
    if ended.stdout.strip():
        raise PartsError("there are uncommitted changes: commit them, or use args=--force")


def report(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
