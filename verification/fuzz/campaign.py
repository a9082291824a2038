"""Call the APIs as their OpenAPI documents allow, and as they do not, on a stack of its own.

make fuzz
"""

import argparse
from collections.abc import Mapping

from fetching.errors import Failure
from local_stack import figures
from local_stack.figures import Figure
from local_stack.progress import Tone, complain, tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from test_support.system.clients import Hometown
from verification.fuzz.fuzzing import (
    SERVICES,
    Round,
    Tally,
    create_tally,
    play,
    stack_without_spark,
)

Tallies = Mapping[str, Tally]


def main() -> int:
    """The exit status: 0 if nothing was found, 1 otherwise."""
    arguments = parser().parse_args()
    try:
        with stack_without_spark() as hometown:
            tallies = campaign(hometown, arguments)
    except Failure as failure:
        complain(str(failure))
        return 1
    for service, tally in tallies.items():
        tell(format_tally(service, tally), Tone.BAD if find_complaints(tally) else Tone.GOOD)
    folder = RunFolder(Settings().run_dir)
    folder.create()
    tell(f"figures in {figures.write(folder, 'fuzz', as_figures(tallies))}")
    complaints = [each for tally in tallies.values() for each in find_complaints(tally)]
    for complaint in complaints:
        complain(complaint)
    return 1 if complaints else 0


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="python -m verification.fuzz", description=__doc__)
    root.add_argument(
        "--cases", type=int, default=10_000, help="the least number of requests, over all APIs"
    )
    root.add_argument(
        "--seed", type=int, default=1, help="seed of the first round; each round adds one"
    )
    root.add_argument(
        "--examples", type=int, default=40, help="at most, for an operation in a round"
    )
    root.add_argument(
        "--service", choices=SERVICES, action="append", help="only this API; can be repeated"
    )
    return root


def campaign(hometown: Hometown, arguments: argparse.Namespace) -> Tallies:
    """Each API gets a share of the cases in proportion to its operations."""
    tallies = {each: create_tally(hometown, each) for each in arguments.service or SERVICES}
    operations = sum(len(tally.operations) for tally in tallies.values())
    for service, tally in tallies.items():
        wanted = arguments.cases * len(tally.operations) / operations
        seed = arguments.seed
        while tally.cases < wanted and not tally.failures:
            play(
                hometown,
                Round(service=service, seed=seed, examples_max=arguments.examples),
                tally,
            )
            tell(f"{service:<14} seed {seed}: {tally.cases} of {wanted:.0f} cases")
            seed += 1
    return tallies


def format_tally(service: str, tally: Tally) -> str:
    return (
        f"{service:<14} {tally.cases} cases, {len(tally.operations)} operations,"
        f" {tally.checks.total()} checks of {len(tally.checks)} kinds,"
        f" {tally.successes} successes, {tally.server_errors} server errors,"
        f" {len(tally.failures)} failed rounds"
    )


def find_complaints(tally: Tally) -> list[str]:
    unseen = [f"{name} never succeeded, so it was not tested" for name in tally.never_succeeded]
    return [*tally.failures, *unseen]


def as_figures(tallies: Tallies) -> list[Figure]:
    return [
        Figure(name=f"{service} {name}", value=value, unit="1")
        for service, tally in tallies.items()
        for name, value in {
            "cases": tally.cases,
            "operations": len(tally.operations),
            "checks": tally.checks.total(),
            "kinds of checks": len(tally.checks),
            "successes": tally.successes,
            "server errors": tally.server_errors,
            "operations that never succeeded": len(tally.never_succeeded),
            "failed rounds": len(tally.failures),
        }.items()
    ]
