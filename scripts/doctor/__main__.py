"""python3 -m scripts.doctor: what this machine lacks, and how to repair it.

It runs before anything is installed: all of it needs the standard library only, and this module
above the version check can be read by an old Python.
"""

import argparse
import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this line reports it
    version = ".".join(str(part) for part in sys.version_info[:3])
    sys.exit(
        "hometown: this is Python " + version + ", which is too old: "
        "install 3.11 or newer; where it has another name, write PYTHON=python3.12 into .env"
    )
if sys.platform == "win32":
    sys.exit(
        "hometown: this is Windows itself, and the project runs in its Linux only: "
        "`wsl --install`, then clone inside of it"
    )

from scripts.doctor.examination import examine
from scripts.doctor.judging import FAILURE, MEMORY_GB_NEEDED, NOTE, OK, WARNING, Finding

COLOURS = {OK: "\x1b[32m", NOTE: "", WARNING: "\x1b[33m", FAILURE: "\x1b[31m"}


def main() -> int:
    """Return 1 if something is missing without which the stack does not start."""
    parser = argparse.ArgumentParser(
        prog="make doctor",
        description="Look for what this machine lacks, and print how to repair it.",
        epilog="It ends with 1 only if something stops the start. in=containers and in=cluster"
        " ask for what these need.",
    )
    parser.add_argument("--problems", action="store_true", help="print warnings and failures only")
    arguments = parser.parse_args()
    way = os.environ.get("HOMETOWN_IN", "processes")
    if way not in MEMORY_GB_NEEDED:
        parser.exit(
            1, f"hometown: in={way} is unknown: choose one of {', '.join(MEMORY_GB_NEEDED)}\n"
        )
    is_coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    failures = 0
    for finding in examine(way):
        failures += finding.level == FAILURE
        if finding.level in (WARNING, FAILURE) or not arguments.problems:
            sys.stdout.write(format_finding(finding, is_coloured=is_coloured))
            sys.stdout.flush()
    return 1 if failures else 0


def format_finding(finding: Finding, *, is_coloured: bool) -> str:
    level = f"{finding.level:<8}"
    if is_coloured:
        level = f"{COLOURS[finding.level]}{level}\x1b[0m"
    repair = f"{'':<8} {'':<12} repair: {finding.repair}\n" if finding.repair else ""
    return f"{level} {finding.check:<12} {finding.text}\n{repair}"


if __name__ == "__main__":
    sys.exit(main())
