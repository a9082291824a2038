"""Try to make the relay lose, invent or reorder events: see README.md.

make stress
"""

import argparse
import logging
import math
from collections.abc import Sequence

import uvloop

from fetching.errors import Failure
from local_stack import figures
from local_stack.figures import Figure
from local_stack.kafka import KAFKA
from local_stack.logs import last_lines
from local_stack.postgres import POSTGRES, dsn
from local_stack.progress import Tone, complain, tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.testing import new_database, throwaway_stack
from shared.runtime.progress import tell_in_place
from verification.stress import topic
from verification.stress import trial as trials
from verification.stress.ledger import percentile
from verification.stress.trial import Outcome, Trial

WRITERS_MAX = 80
"""The server takes 100 connections, and the relays and the reader need some."""
LOG_LINES_SHOWN = 20


def main() -> int:
    """The exit status: 0 if every run was good and every control showed its flaw, 1 otherwise."""
    arguments = parser().parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # the broker is killed on purpose
    try:
        with throwaway_stack(StackSpec(processes=(POSTGRES, KAFKA))) as context:
            uvloop.run(topic.create_topic(context.address("kafka")))
            outcomes = [run(each, context) for each in plan_trials(arguments)]
            controls = [run(each, context) for each in plan_controls(arguments)]
    except Failure as failure:
        complain(str(failure))
        return 1
    folder = RunFolder(Settings().run_dir)
    folder.create()
    written = figures.write(folder, "stress", as_figures(outcomes, controls))
    tell(f"figures in {written}")
    complaints = find_complaints(outcomes, controls)
    for complaint in complaints:
        complain(complaint)
    return 1 if complaints else 0


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="python -m verification.stress", description=__doc__)
    root.add_argument("--seeds", type=int, default=20, help="number of runs, one seed each")
    root.add_argument("--first", type=int, default=1, help="the first seed, to repeat one run")
    root.add_argument("--seconds", type=float, default=30, help="how long each run writes")
    root.add_argument(
        "--writers",
        type=int,
        default=64,
        choices=range(1, WRITERS_MAX + 1),
        metavar=f"1..{WRITERS_MAX}",
        help="connections that write at once",
    )
    root.add_argument(
        "--streams", type=int, default=200, help="number of streams that they write to"
    )
    root.add_argument(
        "--relay",
        choices=("ours", "position", "horizon"),
        default="ours",
        help="which relay; position and horizon are simpler designs",
    )
    root.add_argument(
        "--calm",
        action="store_true",
        help="kill and freeze nothing; always set for the simpler relays, which fail without it",
    )
    root.add_argument(
        "--no-controls",
        action="store_true",
        help="omit the runs of the simpler relays",
    )
    return root


def plan_trials(arguments: argparse.Namespace) -> list[Trial]:
    return [
        Trial(
            seed=seed,
            relay=arguments.relay,
            seconds=arguments.seconds,
            writers=arguments.writers,
            streams=arguments.streams,
            is_calm=arguments.calm or arguments.relay != "ours",
        )
        for seed in range(arguments.first, arguments.first + arguments.seeds)
    ]


def plan_controls(arguments: argparse.Namespace) -> list[Trial]:
    """One run of each simpler relay: a harness that finds no flaw in them proves nothing."""
    if arguments.no_controls or arguments.relay != "ours":
        return []
    return [
        Trial(
            seed=arguments.first,
            relay=relay,
            seconds=arguments.seconds,
            writers=arguments.writers,
            streams=arguments.streams,
            is_calm=True,
        )
        for relay in ("position", "horizon")
    ]


def find_complaints(outcomes: Sequence[Outcome], controls: Sequence[Outcome]) -> list[str]:
    """A line for each bad run, and for each control that did not show its flaw."""
    flaws = {"position": "lost", "horizon": "inversions"}
    bad = [
        f"seed {each.trial.seed} of relay {each.trial.relay} is bad"
        for each in outcomes
        if not each.is_good
    ]
    blind = [
        f"relay {each.trial.relay} shows no flaw here, so these runs prove nothing"
        for each in controls
        if not getattr(each.verdict, flaws[each.trial.relay])
    ]
    return bad + blind


def run(trial: Trial, context: StackContext) -> Outcome:
    """Run one trial in a database of its own, and report it in one line."""
    tell_in_place(f"{trial.relay:<8} seed {trial.seed}: {trial.seconds:.0f} s of writing")
    with new_database(dsn(context, "postgres")) as database:
        outcome = uvloop.run(trials.run(trial, context, database))
    tell(format_outcome(outcome), Tone.GOOD if outcome.is_good else Tone.BAD)
    if outcome.exit_codes:
        complain(f"relays ended with {outcome.exit_codes}:")
        for line in last_lines(context.folder.log_of("stress-relay"), LOG_LINES_SHOWN):
            complain(f"  {line}")
    return outcome


def format_outcome(outcome: Outcome) -> str:
    verdict, trial = outcome.verdict, outcome.trial
    return (
        f"{trial.relay:<8} seed {trial.seed}: {verdict.committed} committed,"
        f" {verdict.delivered} delivered, {verdict.lost} lost, {verdict.phantom} phantom,"
        f" {verdict.inversions} inverted, {verdict.broken_links} broken links,"
        f" {verdict.misremembered} misremembered; {verdict.duplicates} duplicates after"
        f" {outcome.blows} blows (at most {outcome.duplicates_bound}),"
        f" {verdict.duplicates_without_cause} without a cause;"
        f" delay p50 {milliseconds(outcome.delays, 0.5):.1f}"
        f" p99 {milliseconds(outcome.delays, 0.99):.1f}"
        f" max {milliseconds(outcome.delays, 1):.1f} ms" + format_at_rest(outcome)
    )


def format_at_rest(outcome: Outcome) -> str:
    """Empty when the run was too short to come to rest."""
    if not outcome.delays_at_rest:
        return ""
    most = milliseconds(outcome.delays_at_rest, 1)
    return f", at rest with a long transaction open max {most:.1f} ms"


def milliseconds(delays: Sequence[float], part: float) -> float:
    return 1_000 * percentile(delays, part)


def as_figures(outcomes: Sequence[Outcome], controls: Sequence[Outcome]) -> list[Figure]:
    """The sums over all seeds, the delays of all seeds together, and what the controls show."""
    names = sorted({each.trial.relay for each in (*outcomes, *controls)})
    return [
        figure
        for name in names
        for figure in create_figures(
            name, [each for each in (*outcomes, *controls) if each.trial.relay == name]
        )
    ]


def create_figures(relay: str, outcomes: Sequence[Outcome]) -> list[Figure]:
    counts = {
        "seeds": len(outcomes),
        "committed": sum(each.verdict.committed for each in outcomes),
        "delivered": sum(each.verdict.delivered for each in outcomes),
        "lost": sum(each.verdict.lost for each in outcomes),
        "phantom": sum(each.verdict.phantom for each in outcomes),
        "inversions": sum(each.verdict.inversions for each in outcomes),
        "broken links": sum(each.verdict.broken_links for each in outcomes),
        "misremembered": sum(each.verdict.misremembered for each in outcomes),
        "duplicates": sum(each.verdict.duplicates for each in outcomes),
        "duplicates without a cause": sum(
            each.verdict.duplicates_without_cause for each in outcomes
        ),
        "duplicates at most": sum(each.duplicates_bound for each in outcomes),
        "blows": sum(each.blows for each in outcomes),
        "races lost": sum(each.races_lost for each in outcomes),
    }
    delays = sorted(delay for each in outcomes for delay in each.delays)
    at_rest = sorted(delay for each in outcomes for delay in each.delays_at_rest)
    times = {
        "delay p50": milliseconds(delays, 0.5),
        "delay p99": milliseconds(delays, 0.99),
        "delay max": milliseconds(delays, 1),
        "delay p99 at rest beside a long transaction": milliseconds(at_rest, 0.99),
        "delay max at rest beside a long transaction": milliseconds(at_rest, 1),
    }
    return [
        *(Figure(name=f"{relay} {name}", value=value, unit="1") for name, value in counts.items()),
        *(
            Figure(name=f"{relay} {name}", value=round(value, 1), unit="ms")
            for name, value in times.items()
            if not math.isnan(value)
        ),
    ]
