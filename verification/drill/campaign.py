"""Faults and planned operations on a stack of its own, under load: nothing is lost, nothing twice.

make drill
"""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fetching.errors import Failure
from local_stack import figures
from local_stack.progress import Tone, complain, duration, tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from verification.drill.drilled_stack import DrilledStack, drilled_stack
from verification.drill.ledger import count
from verification.drill.releases import find_release
from verification.drill.rows import Row, as_figures, format_row, format_table
from verification.drill.steps import STEPS, Drill, Refuted, Skipped, Step
from verification.drill.traffic import CLIENTS, NotRecovered, Tally, Traffic

ROUNDS, ROUNDS_QUICK = 3, 1
FINDINGS_SHOWN_MAX = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 if nothing was lost or twice and no planned operation failed a request."""
    options = parser().parse_args(arguments)
    began = time.monotonic()
    try:
        with drilled_stack() as stack, TemporaryDirectory(prefix="hometown-drill-") as folder:
            rows = asyncio.run(play(stack, Path(folder), options))
            wrong = list(stack.check())
    except Failure as failure:
        complain(str(failure))
        for line in failure.details:
            complain(f"  {line}")
        return 1
    status = report(rows, wrong)
    tell(f"{len(rows)} steps after {duration(time.monotonic() - began)}")
    return status


def report(rows: Sequence[Row], wrong: Sequence[str]) -> int:
    """Print the table and what went wrong, and write the figures; the exit status.

    `wrong` is what the checks of the whole stack have found.
    """
    tell(f"\n{format_table(rows)}\n")
    folder = RunFolder(Settings().run_dir)
    folder.create()
    tell(f"figures in {figures.write(folder, 'drill', as_figures(rows))}")
    bad = [*(f"{row.step} went wrong" for row in rows if not row.is_good), *wrong]
    for each in bad:
        complain(each)
    return 1 if bad else 0


def parser() -> argparse.ArgumentParser:
    steps = "\n".join(f"  {each.name:<20} {each.does}" for each in STEPS)
    made = argparse.ArgumentParser(
        prog="python -m verification.drill",
        description=__doc__,
        epilog=f"steps:\n{steps}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--quick", action="store_true", help=f"each step once, not {ROUNDS} times")
    made.add_argument("--steps", type=find_steps, default=STEPS, metavar="NAME,NAME")
    made.add_argument(
        "--previous",
        metavar="REV",
        help="the commit of the previous release, for upgrade; default: the newest tag, else, and"
        " not with --quick, the commit before this one",
    )
    made.add_argument(
        "--clients",
        type=int,
        default=CLIENTS,
        metavar="NUMBER",
        help=f"each places about five orders a second (default: {CLIENTS})",
    )
    made.add_argument("--seed", type=int, default=1, help="of what clients and steps choose")
    return made


def find_steps(names: str) -> tuple[Step, ...]:
    """The steps with these names. Raises argparse.ArgumentTypeError for an unknown one."""
    known = {each.name: each for each in STEPS}
    try:
        return tuple(known[name] for name in names.split(","))
    except KeyError as error:
        raise argparse.ArgumentTypeError(f"there is no step {error.args[0]}") from None


async def play(stack: DrilledStack, folder: Path, options: argparse.Namespace) -> list[Row]:
    """Do the steps until one cannot be done."""
    rows = []
    previous = options.previous or find_release() or (None if options.quick else "HEAD~1")
    if previous:
        tell(f"the previous release is {previous}")
    async with open_traffic(stack, options.seed, options.clients) as traffic:
        for number in range(ROUNDS_QUICK if options.quick else ROUNDS):
            for step in options.steps:
                own = folder / f"{step.name}-{number}"
                own.mkdir()
                seed = options.seed + number
                drill = Drill(
                    stack=stack, traffic=traffic, folder=own, previous=previous, seed=seed
                )
                try:
                    row = await do(step, drill)
                except Failure as failure:
                    rows.append(end_drill(step, failure))
                    return rows
                tell("  ".join(format_row(row)), Tone.GOOD if row.is_good else Tone.BAD)
                rows.append(row)
    return rows


def end_drill(step: Step, failure: Failure) -> Row:
    """The row of a step after which no other can be done."""
    for line in failure.details:
        complain(f"  {line}")
    problem = f"the drill ends: {failure}"
    return Row(step=step.name, is_planned=step.is_planned, problems=[problem])


@asynccontextmanager
async def open_traffic(stack: DrilledStack, seed: int, clients: int) -> AsyncIterator[Traffic]:
    """Clients with users and items to order."""
    traffic = Traffic(stack.hometown, seed, clients=clients, is_counted=stack.counts)
    try:
        traffic.ledger.adopt(await stack.read())
        await traffic.open_shop()
        yield traffic
    finally:
        await traffic.close()


async def do(step: Step, drill: Drill) -> Row:
    """One step, and what is lost or there twice when it is over."""
    tell(f"\n{step.name}: {step.does}")
    drill.traffic.tally = tally = Tally()
    recovery, problems = None, []
    try:
        recovery = await step.play(drill)
    except Skipped as skipped:
        return Row(step=step.name, is_planned=step.is_planned, skipped=str(skipped))
    except (NotRecovered, Refuted) as problem:
        problems.append(str(problem))
    found = await drill.stack.settle(drill.traffic.ledger)
    for each in found[:FINDINGS_SHOWN_MAX]:
        tell(f"  {each.text}", Tone.BAD)
    for reason, times in sorted(tally.failed.items()):
        tell(f"  first try failed {times} times: {reason}")
    if tally.overloaded:
        refused = f"{tally.overloaded} orders were refused at first: earlier ones waited"
        tell(f"  {refused}")
        if step.is_planned:
            problems.append(refused)
    return Row(
        step=step.name,
        is_planned=step.is_planned,
        lost=count(found, "lost"),
        twice=count(found, "twice"),
        failed=tally.failed.total(),
        requests=tally.requests,
        recovery=recovery,
        problems=problems,
    )
