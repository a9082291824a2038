"""python -m scripts.upgrade.finish RELEASE: bring what is the copy's own to this release.

RELEASE is the one of before.
"""

import argparse
import sys
from pathlib import Path

from libcst import ParserSyntaxError

from scripts.changes import (
    CHECKOUT,
    ChangeError,
    Report,
    format_code,
    list_tracked,
    renew_generated,
    report,
    run_captured,
    run_command,
    run_steps,
    unchanged_if_it_fails,
)
from scripts.upgrade.changelog import report_to_do
from scripts.upgrade.codemods import CODEMODS, rewrite
from scripts.upgrade.merge import add_resolved, list_open

CHECKS = ("lint", "types", "imports", "contracts-check")
LINES_SHOWN_MAX = 20


def main() -> int:
    """0 if nothing is left to correct; 1 with a line on standard error."""
    parser = argparse.ArgumentParser(prog="scripts.upgrade.finish", description=__doc__)
    parser.add_argument("since", help="the release of before, such as v0.1.0")
    since = parser.parse_args().since
    return run_command(lambda: finish(CHECKOUT, since), interrupted="make upgrade goes on")


def finish(root: Path, since: str) -> int:
    """Rewrite, generate and check; print what is left to do, and return the exit status."""
    rewritten, left = rewrite_code(root, report)
    try:
        with unchanged_if_it_fails(root):
            steps = format_code(*rewritten) if rewritten else []
            run_steps(root, [*steps, *renew_generated("writing the contracts")], report)
    except ChangeError as error:
        left.append(str(error))
    add_resolved(root)
    left += [f"{file}: both changed the same lines" for file in list_open(root)]
    left += run_checks(root, report)
    report_to_do(root, since, report)
    for line in left:
        report(f"  left: {line}")
    if left:
        raise ChangeError(
            f"the release is there, and {len(left)} things are left to you: correct them before "
            "you commit, then make upgrade goes on"
        )
    report("done. Next: make check, git add -A, git commit, make up")
    return 0


def rewrite_code(root: Path, report: Report) -> tuple[list[str], list[str]]:
    """Apply the codemods to all modules of the copy.

    Returns:
        Those that were rewritten, and a line for each that is no Python.
    """
    rewritten, left = [], []
    for file in list_tracked(root):
        path = root / file
        if path.suffix != ".py" or path.is_symlink():
            continue
        try:
            text = path.read_bytes().decode()  # ends of lines stay as they are
            newer = rewrite(text, CODEMODS)
        except (UnicodeDecodeError, ParserSyntaxError):
            left.append(f"{file}: it is no Python, so that older forms stay in it")
            continue
        if newer != text:
            path.write_bytes(newer.encode())
            rewritten.append(file)
            report(f"rewrote {file}")
    return rewritten, left


def run_checks(root: Path, report: Report) -> list[str]:
    """Return what the checks that take seconds print if they fail."""
    found = []
    for verb in CHECKS:
        report(f"make {verb}")
        ended = run_captured(root, ["make", "--no-print-directory", verb])
        if ended.returncode != 0:
            last = ended.stdout.rstrip().splitlines()[-LINES_SHOWN_MAX:]
            found.append("\n    ".join([f"make {verb} fails:", *last]))
    return found


if __name__ == "__main__":
    sys.exit(main())
