"""The command of a benchmark: which parts, how much of them, a table and a file of figures."""

import argparse
import os
from collections.abc import Sequence

import uvloop

from benchmarks.part import Part, S
from benchmarks.series import as_figures, as_table
from fetching.errors import Failure
from fetching.settings import Settings
from local_stack import figures, testing
from local_stack.figures import Figure
from local_stack.progress import complain, tell
from local_stack.run_folder import RunFolder


def main(
    verb: str, description: str, parts: Sequence[Part[S]], *, full: S, quick: S, tiny: S
) -> int:
    """A part that fails does not keep the others from being measured."""
    by_name = {part.name: part for part in parts}
    made = parser(description, parts)
    size = made.add_mutually_exclusive_group()
    size.add_argument(
        *("--quick", "-q"),
        dest="size",
        action="store_const",
        const=quick,
        help="fewer rounds of less; for a first look",
    )
    size.add_argument(
        "--tiny",
        dest="size",
        action="store_const",
        const=tiny,
        help="so little that the figures mean nothing; shows that the benchmark works",
    )
    made.set_defaults(size=full)
    arguments = made.parse_args()
    folder = RunFolder(Settings().run_dir)
    folder.create()
    found: list[Figure] = []
    failed = False
    for part in (by_name[name] for name in arguments.only or by_name):
        try:
            found += run(part, arguments.size)
        except Failure as failure:
            tell_failure(part.name, failure)
            failed = True
    path = figures.write(folder, "-".join([verb, *(arguments.only or ())]), found)
    tell(f"\nfigures are in {path}")
    return 1 if failed else 0


def parser(description: str, parts: Sequence[Part[S]]) -> argparse.ArgumentParser:
    names = "\n".join(f"  {part.summary}" for part in parts)
    made = argparse.ArgumentParser(
        description=f"{description}\nparts:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--only",
        action="append",
        choices=[part.name for part in parts],
        metavar="NAME",
        help="this part; may be repeated",
    )
    return made


def run(part: Part[S], size: S) -> Sequence[Figure]:
    """Measure one part on servers of its own, and show what was found."""
    load = os.getloadavg()[0]
    tell(f"\n{part.summary.splitlines()[0]}\nload average of the last minute: {load:.2f}")
    with testing.throwaway_stack(part.spec) as context:
        measured = uvloop.run(part.measure(context, size))
    tell(as_table(measured))
    return [
        Figure(name=f"{part.name}: load average before", value=load, unit="processes"),
        *as_figures(measured),
    ]


def tell_failure(name: str, failure: Failure) -> None:
    complain(f"{name} was not measured: {failure}")
    for line in failure.details:
        complain(f"  {line}")
