"""How much of everything a load needs, by the measured cost of a record.

make plan rate=100000 peak=500000
"""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from benchmarks.capacity import costs, document
from benchmarks.capacity.costs import Figures, NotMeasured
from benchmarks.capacity.plan import MEGABYTE, TERABYTE, Load, Machine, create_plan
from benchmarks.capacity.report import format_plan
from local_stack.progress import complain, tell
from local_stack.settings import Settings

EXIT_MALFORMED = 2

LOAD_OPTIONS = {
    "rate": "records a second, as the mean of a day",
    "peak": "records a second at the peak; default: the rate",
    "size": "bytes of a record, with its headers and key",
    "days": "how long records are kept",
    "replicas": "copies of a partition",
    "readers": "consumer groups that read all records",
    "segment": "bytes of a segment, segment.bytes of the topic",
    "clusters": "clusters that mirror each other's records",
}
MACHINE_OPTIONS = {
    "cores": ("of a broker", 1),
    "disk": ("TB of a broker", TERABYTE),
    "network": ("MB/s of a broker, each way", MEGABYTE),
}
"""What each says, and how many of Machine's units one of it is."""
VALUE_MAX = 10**12
"""No option means anything beyond it."""


class OneLineParser(argparse.ArgumentParser):
    """An error is one line, without the usage: `--help` has that."""

    def error(self, message: str) -> NoReturn:
        complain(message.removeprefix("argument --"))
        sys.exit(EXIT_MALFORMED)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 if a figure is missing, 2 after a malformed option."""
    parser = create_parser()
    options = parser.parse_args(arguments)
    try:
        if options.page:
            document.PAGE.write_text(document.render(document.PAGE.read_text(), plan_as_recorded))
        else:
            tell(plan(parser, options, read_figures(options)))
    except NotMeasured as missing:
        complain(str(missing))
        return 1
    return 0


def read_figures(options: argparse.Namespace) -> Figures:
    """Those of this machine where they are, else the recorded ones."""
    recorded = costs.read_recorded()
    if options.recorded:
        return recorded
    folders = costs.list_run_folders(Settings().run_dir)
    return {**recorded, **costs.read_measured(folders)}


def plan_as_recorded(arguments: Sequence[str]) -> str:
    """What the command prints for a machine on which nothing was measured."""
    parser = create_parser()
    return plan(parser, parser.parse_args(arguments), costs.read_recorded())


def plan(parser: argparse.ArgumentParser, options: argparse.Namespace, figures: Figures) -> str:
    """Raises NotMeasured."""
    load, machine = create_load(parser, options), create_machine(options)
    return format_plan(create_plan(load, costs.derive_costs(figures), machine))


def create_load(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Load:
    if options.rate is None:
        parser.error("rate is missing, such as rate=100000")
    given = {name: getattr(options, name) for name in LOAD_OPTIONS}
    given["peak"] = given["peak"] or given["rate"]
    if given["peak"] < given["rate"]:
        parser.error(f"peak: {given['peak']} is less than the rate, {given['rate']}")
    quota = None if options.quota is None else options.quota * MEGABYTE
    return Load(**given, quota=quota)


def create_machine(options: argparse.Namespace) -> Machine:
    return Machine(
        **{name: getattr(options, name) * one for name, (_, one) in MACHINE_OPTIONS.items()}
    )


def create_parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.capacity",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    load, machine = Load(rate=1, peak=1), Machine()
    for name, words in LOAD_OPTIONS.items():
        default = None if name in ("rate", "peak") else getattr(load, name)
        shown = "" if default is None else f" ({default})"
        parser.add_argument(
            f"--{name}", type=number, metavar="N", default=default, help=f"{words}{shown}"
        )
    for name, (words, one) in MACHINE_OPTIONS.items():
        default = getattr(machine, name) // one
        parser.add_argument(
            f"--{name}", type=number, metavar="N", default=default, help=f"{words} ({default})"
        )
    parser.add_argument(
        "--quota", type=number, metavar="N", help="MB/s that a client can send to one broker"
    )
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="by benchmarks/figures.md alone, also where this machine was measured",
    )
    parser.add_argument(
        "--page", action="store_true", help="write the plans in docs/capacity.md again"
    )
    return parser


def number(text: str) -> int:
    """A whole number from 1 on; argparse puts the name of the option in front of the error."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= VALUE_MAX):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to {VALUE_MAX:,}")
    return int(text)
