"""How fast orders and events are taken, delivered and consumed, each figure beside its limit.

make bench
"""

import argparse
import os
import sys
from collections.abc import Sequence

import uvloop

import appending
import confirming
import consuming
import delivery_times
import draining
import failing_over
import folding
import placing
from embedded import figures, testing
from embedded.errors import Failure
from embedded.figures import Figure
from embedded.progress import complain, tell
from embedded.run_folder import RunFolder
from embedded.settings import Settings
from part import Part
from series import as_figures, as_table
from sizes import FULL, QUICK, TINY, Size

PARTS = {
    part.name: part
    for part in (
        appending.PART,
        draining.PART,
        delivery_times.PART,
        failing_over.PART,
        consuming.PART,
        folding.PART,
        placing.PART,
        confirming.PART,
    )
}


def main() -> int:
    """A part that fails does not keep the others from being measured."""
    arguments = parser().parse_args()
    verb = "-".join(["delivery", *(arguments.only or ())])
    folder = RunFolder(Settings().run_dir)
    folder.create()
    found: list[Figure] = []
    failed = False
    for part in (PARTS[name] for name in arguments.only or PARTS):
        try:
            found += run(part, arguments.size)
        except Failure as failure:
            tell_failure(part, failure)
            failed = True
    tell(f"\nfigures are in {figures.write(folder, verb, found)}")
    return 1 if failed else 0


def tell_failure(part: Part, failure: Failure) -> None:
    complain(f"{part.name} was not measured: {failure}")
    for line in failure.details:
        complain(f"  {line}")


def parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {part.summary}" for part in PARTS.values())
    made = argparse.ArgumentParser(
        description=f"{__doc__}\nparts:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--only", action="append", choices=PARTS, metavar="NAME", help="this part; may be repeated"
    )
    size = made.add_mutually_exclusive_group()
    size.add_argument(
        *("--quick", "-q"),
        dest="size",
        action="store_const",
        const=QUICK,
        help="fewer rounds of less; for a first look",
    )
    size.add_argument(
        "--tiny",
        dest="size",
        action="store_const",
        const=TINY,
        help="so little that the figures mean nothing; shows that the benchmark works",
    )
    made.set_defaults(size=FULL)
    return made


def run(part: Part, size: Size) -> Sequence[Figure]:
    """Measure one part on servers of its own, and show what was found."""
    load = os.getloadavg()[0]
    tell(f"\n{part.summary.splitlines()[0]}\nload average of the last minute: {load:.2f}")
    with testing.throwaway_stack(part.composition) as site:
        measured = uvloop.run(part.measure(site, size))
    tell(as_table(measured))
    return [
        Figure(name=f"{part.name}: load average before", value=load, unit="processes"),
        *as_figures(measured),
    ]


if __name__ == "__main__":
    sys.exit(main())
