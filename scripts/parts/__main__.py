"""python -m scripts.parts NAME: leave parts of the project out."""

import argparse
import sys
from collections.abc import Sequence

from scripts.changes import CHECKOUT, demand_committed, report, run_command
from scripts.parts.declared import load_parts
from scripts.parts.removal import Cut, plan_cut, remove_parts


def main() -> int:
    """0 if the parts are out; 1 with a line on standard error."""
    parser = argparse.ArgumentParser(
        prog="make without",
        description="Take parts out of this checkout, with every line that mentions them.",
        epilog="Without a part, list them. Until it is committed, git can undo it.",
    )
    parser.add_argument("part", nargs="?", default="", help="its name, or several, with commas")
    parser.add_argument("--dry-run", action="store_true", help="show what would go")
    arguments = parser.parse_args()
    names = [name.strip() for name in arguments.part.split(",") if name.strip()]
    return run_command(lambda: take_out(names, is_dry=arguments.dry_run))


def take_out(names: Sequence[str], *, is_dry: bool) -> int:
    if not names:
        list_parts()
        return 0
    cut = plan_cut(CHECKOUT, names)
    if is_dry:
        show(cut)
        return 0
    demand_committed(CHECKOUT)
    remove_parts(CHECKOUT, cut, report)
    return show_what_is_left(cut)


def list_parts() -> None:
    parts = load_parts(CHECKOUT)
    if not parts:
        report("there is no part that can be left out")
    for part in parts.values():
        needs = f" (needs {', '.join(part.needs)})" if part.needs else ""
        report(f"  {part.name:14} {part.title}{needs}")


def show(cut: Cut) -> None:
    """Print what a removal would do to each file."""
    for file in cut.removed:
        report(f"  - {file}")
    for file, text in cut.changed.items():
        before = len((CHECKOUT / file).read_text().splitlines())
        report(f"  ~ {file} ({len(text.splitlines()) - before:+} lines)")
    for mention in cut.left:
        report(f"  ? {mention}")
    asked = f", {len(cut.left)} lines are left to you (?)" if cut.left else ""
    report(
        f"without {cut.names}: {len(cut.removed)} files would go (-), "
        f"{len(cut.changed)} would change (~){asked}; nothing was changed"
    )


def show_what_is_left(cut: Cut) -> int:
    if cut.left:
        for mention in cut.left:
            report(f"  {mention}")
        sys.stderr.write(
            f"hometown: without {cut.names}, but {len(cut.left)} lines still mention it: "
            "change these by hand, then make check\n"
        )
        return 1
    report(f"done, without {cut.names}. Next: make check, make demo, git commit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
