"""Measure Hometown against its limits and against simpler designs, in parts.

The figures are printed as tables and written to .run/processes/bench/<benchmark>.json.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import uvloop

from benchmarks import page
from benchmarks.analytics.parts import ANALYTICS
from benchmarks.delivery.parts import DELIVERY
from benchmarks.goals import Verdict
from benchmarks.page import Section
from benchmarks.part import Benchmark, Part, S
from benchmarks.series import Series, as_figures, as_table
from fetching.errors import Failure
from local_stack import figures, progress, testing
from local_stack.figures import Figure
from local_stack.progress import complain, tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings

BENCHMARKS: Mapping[str, Benchmark[Any]] = {each.name: each for each in (DELIVERY, ANALYTICS)}


TINY = "tiny"


class UnknownPart(Exception):
    """The message names the part that was asked for and those that exist."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 1 if a part could not be measured, or a goal is missed."""
    parser = create_parser()
    options = parser.parse_args(arguments)
    chosen = [BENCHMARKS[options.benchmark]] if options.benchmark else [*BENCHMARKS.values()]
    try:
        chosen = select_parts(chosen, options.only)
    except UnknownPart as error:
        parser.error(str(error))
    if options.record and options.size == TINY:
        parser.error("figures of the tiny size mean nothing")
    if options.list:
        tell(list_parts(chosen))
        return 0
    folder = RunFolder(Settings().run_dir)
    folder.create()
    is_partial = bool(options.only)
    outcomes = [measure(each, options.size, folder, is_partial=is_partial) for each in chosen]
    sections = {name: each for outcome in outcomes for name, each in outcome.sections.items()}
    last = {**page.read_page(page.PAGE), **sections}
    tell(f"\n{page.format_screen(last, sections)}")
    if options.record:
        order = [name_section(each, part) for each in BENCHMARKS.values() for part in each.parts]
        page.record(page.PAGE, sections, order)
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


def create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=f"parts:\n{list_parts([*BENCHMARKS.values()])}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "benchmark",
        nargs="?",
        choices=BENCHMARKS,
        metavar="BENCHMARK",
        help=f"{' or '.join(BENCHMARKS)}; default: both",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PART",
        help="measure only this part; can be repeated",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        *("--quick", "-q"),
        dest="size",
        action="store_const",
        const="quick",
        help="fewer rounds of less work, for a first impression",
    )
    size.add_argument(
        "--tiny",
        dest="size",
        action="store_const",
        const=TINY,
        help="the least work that runs all of the code; the figures mean nothing",
    )
    parser.set_defaults(size="full")
    parser.add_argument(
        "--record", action="store_true", help="also write the figures to benchmarks/figures.md"
    )
    parser.add_argument("--list", action="store_true", help="list the parts, measure nothing")
    return parser


def select_parts(
    benchmarks: Sequence[Benchmark[Any]], names: Sequence[str]
) -> list[Benchmark[Any]]:
    """The benchmarks reduced to the named parts, in the order of the names; without names, all.

    Raises:
        UnknownPart: no benchmark has a part of that name.
    """
    if not names:
        return [*benchmarks]
    known = [part.name for benchmark in benchmarks for part in benchmark.parts]
    for name in names:
        if name not in known:
            raise UnknownPart(f"there is no part {name!r}; the parts are {', '.join(known)}")
    reduced = [each.reduce_to(names) for each in benchmarks]
    return [each for each in reduced if each.parts]


def list_parts(benchmarks: Sequence[Benchmark[Any]]) -> str:
    """A table: benchmark, part, what the part measures."""
    rows = [
        (benchmark.name, *part.title.split(": ", maxsplit=1))
        for benchmark in benchmarks
        for part in benchmark.parts
    ]
    return progress.table(("benchmark", "part", "measures"), rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The sections of the page for the parts that could be measured; whether all were, and are as
    wanted."""

    sections: Mapping[str, Section]
    is_good: bool


def measure(benchmark: Benchmark[S], size: str, folder: RunFolder, *, is_partial: bool) -> Outcome:
    """Measure all parts and write their figures.

    A part that fails does not keep the others from being measured. Figures of the tiny size mean
    nothing, so they miss no goal.
    """
    found: list[Figure] = []
    sections: dict[str, Section] = {}
    is_good = True
    for part in benchmark.parts:
        try:
            load, measured = measure_part(part, benchmark.sizes[size])
        except Failure as failure:
            report_failure(part.name, failure)
            is_good = False
            continue
        found += [load, *as_figures(measured)]
        section = page.create_section(measured, size, load.value)
        sections[name_section(benchmark, part)] = section
        if size != TINY:
            is_good = report_goals(part.name, measured) and is_good
    path = figures.write(folder, name_figures(benchmark, is_partial=is_partial), found)
    tell(f"\nfigures are in {path}")
    return Outcome(sections=sections, is_good=is_good)


def name_section(benchmark: Benchmark[S], part: Part[S]) -> str:
    """Two benchmarks can have a part of the same name."""
    return f"{benchmark.name}: {part.name}"


def name_figures(benchmark: Benchmark[S], *, is_partial: bool) -> str:
    """The name of the file of figures: figures of single parts do not replace those of all."""
    parts = [part.name for part in benchmark.parts] if is_partial else []
    return "-".join([benchmark.name, *parts])


def measure_part(part: Part[S], size: S) -> tuple[Figure, Sequence[Series]]:
    """Measure one part on servers of its own, and print what was found; with the load before."""
    load = os.getloadavg()[0]
    tell(f"\n{part.title}\nload average of the last minute: {load:.2f}")
    with testing.throwaway_stack(part.spec) as context:
        measured = uvloop.run(part.measure(context, size))
    tell(as_table(measured))
    before = Figure(name=f"{part.name}: load average before", value=load, unit="processes")
    return before, measured


def report_goals(part: str, measured: Sequence[Series]) -> bool:
    """Name each goal that is missed by more than the noise; whether there is none."""
    missed = [each for each in measured if each.verdict is Verdict.MISSED]
    for each in missed:
        figure = each.ratio if each.goal and each.goal.is_ratio else each.value
        complain(f"{part} misses a goal: {each.name} is {figure:,.3g}, the goal {each.goal}")
    return not missed


def report_failure(name: str, failure: Failure) -> None:
    complain(f"{name} was not measured: {failure}")
    for line in failure.details:
        complain(f"  {line}")
