"""Each way reads the same numbers, is killed once, and starts again: what is lost, what is twice?

Where it is killed decides how many, so that each way claims exact figures.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lessons.broker import PREFIX, open_topics
from lessons.committing import spark_sink, ways
from lessons.committing.child import Way
from lessons.committing.crash import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    EXACTLY_ONCE,
    Crash,
    Fates,
    Level,
    count_fates,
)
from lessons.committing.killing import (
    CREATE_TABLES,
    Kill,
    Setup,
    kill_program,
    kill_query,
    kill_reader,
    kill_sender,
    to_spark,
)
from lessons.committing.reader import Death, Moment
from lessons.committing.ways import FAILING_NUMBER
from lessons.concurrency import run_at_a_time
from lessons.experiment import Finding, Findings
from lessons.lab import Lab
from local_stack.testing import execute

QUICK: Mapping[str, int] = {"numbers": 1_000}
NUMBERS = 5_000
EVERY = 100
DIES_AFTER = 250
"""In the middle of a batch."""
TRIALS_MAX = 3
"""At a time: each has a process."""
A_BATCH_AGAIN = replace(AT_LEAST_ONCE, name="at least once, a batch again", twice_max=EVERY)

FIND_PACE = "SELECT numbers_per_second FROM paces WHERE way = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is claimed of a way: a level and, if given, what exactly a crash leads to.

    `crash` is its own, in place of that of the run.
    """

    name: str
    level: Level
    leads_to: Callable[[Crash], Fates] | None = None
    kill: Kill
    crash: Crash | None = None


def run(
    lab: Lab, numbers: int = NUMBERS, every: int = EVERY, dies_after: int = DIES_AFTER
) -> Sequence[Finding]:
    """Try all ways on numbers from 1. Raises Failure if there is no such crash."""
    return try_all(lab, TRIALS, Crash(numbers=numbers, every=every, dies_after=dies_after), "ways")


def run_controls(lab: Lab) -> Sequence[Finding]:
    """Claim of ways what only the mechanism that they lack would give."""
    return try_all(lab, CONTROLS, Crash(**QUICK, every=EVERY, dies_after=DIES_AFTER), "ways")


def check(lab: Lab, program: Path, function: str) -> Findings:
    """Kill a function of a learner's program: in an effect, and around its first two offsets.

    A second one finds what is remembered twice for a batch, such as in two systems.
    """
    level = {"read_at_least_once": A_BATCH_AGAIN, "read_exactly_once": EXACTLY_ONCE}[function]
    crash = Crash(numbers=3 * EVERY, every=EVERY, dies_after=3 * EVERY // 2)
    deaths = {
        "killed in a batch": [Death(moment=Moment.AFTER_EFFECT, number=crash.dies_after)],
        "killed at its first offset": around_offset(1),
        "killed at its second offset": around_offset(2),
    }
    kill = partial(kill_program, program=program, function=function)
    trials = [
        Trial(name=name, level=level, kill=partial(kill, deaths=of_name))
        for name, of_name in deaths.items()
    ]
    return Findings(claims=try_all(lab, trials, crash, "exercise"))


def around_offset(number: int) -> list[Death]:
    """Before, and in the next life after, it is committed or stored."""
    return [
        Death(moment=moment, number=number)
        for moment in (Moment.BEFORE_OFFSET, Moment.AFTER_OFFSET)
    ]


def try_all(lab: Lab, trials: Sequence[Trial], crash: Crash, purpose: str) -> list[Finding]:
    """Let each way be killed, and judge it. Raises the first error of one."""

    async def prepare_and_try(dsn: str) -> list[Finding]:
        await execute(dsn, CREATE_TABLES)
        async with (
            open_topics(lab.servers) as topics,
            topics.remove_around(f"{PREFIX}committing.{purpose}.") as prefix,
        ):
            setup = Setup(lab=lab, topics=topics, dsn=dsn, prefix=prefix, crash=crash)
            setups = [replace(setup, crash=trial.crash or crash) for trial in trials]
            for each in {each.numbers: each for each in setups}.values():
                await each.publish_numbers()
            pairs = zip(trials, setups, strict=True)
            return await run_at_a_time(TRIALS_MAX, [partial(judge, *pair) for pair in pairs])

    with lab.databases.create("shared") as dsn:
        return asyncio.run(prepare_and_try(dsn))


async def judge(trial: Trial, setup: Setup) -> Finding:
    """Let a way be killed, and compare what came of the numbers with what is claimed."""
    effects = await trial.kill(setup, trial.name)
    fates = count_fates(effects, setup.crash.numbers)
    paces = await setup.find(FIND_PACE, trial.name)
    return Finding(
        row={
            "way": trial.name,
            "lost": fates.lost,
            "twice": fates.twice,
            "exactly once": setup.crash.numbers - fates.lost - fates.twice,
            "numbers/s": max(paces, default="-"),
        },
        claim=trial.level.name,
        difference=find_difference(trial, setup.crash, fates),
    )


def find_difference(trial: Trial, crash: Crash, fates: Fates) -> str:
    """Compare what came of the numbers with what is claimed; empty if that holds."""
    if not trial.level.allows(fates):
        return str(fates)
    expected = trial.leads_to(crash) if trial.leads_to else fates
    return "" if fates == expected else f"{fates}, instead of {expected}"


def find_begin_after_failure(crash: Crash) -> int:
    """Find `Crash.begin`, where the record that failed begins a batch."""
    passed = FAILING_NUMBER - 1 if crash.dies_after >= FAILING_NUMBER else 0
    return passed + (crash.dies_after - passed - 1) // crash.every * crash.every


def make_trial(way: Way, level: Level, leads_to: Callable[[Crash], Fates] | None = None) -> Trial:
    """Make the trial of a way whose effects are rows, with its name."""
    name = way.__name__.replace("_", " ")
    return Trial(name=name, level=level, leads_to=leads_to, kill=partial(kill_reader, way=way))


TRIALS = (
    make_trial(
        ways.commit_automatically_at_once,
        AT_MOST_ONCE,
        lambda crash: Fates(lost=crash.end - crash.dies_after),
    ),
    make_trial(
        ways.commit_automatically_and_late,
        AT_LEAST_ONCE,
        lambda crash: Fates(twice=crash.dies_after),
    ),
    make_trial(
        ways.commit_before,
        AT_MOST_ONCE,
        lambda crash: Fates(lost=crash.end - crash.dies_after),
    ),
    make_trial(
        ways.commit_after,
        AT_LEAST_ONCE,
        lambda crash: Fates(twice=crash.dies_after - crash.begin),
    ),
    replace(
        make_trial(ways.commit_after, AT_LEAST_ONCE, lambda _: Fates(twice=500)),
        name="commit after, each 1,000",
        crash=Crash(numbers=10_000, every=1_000, dies_after=9_500),
    ),
    make_trial(
        ways.commit_out_of_order,
        AT_LEAST_ONCE,
        lambda crash: Fates(twice=crash.dies_after - max(crash.begin - crash.every, 0)),
    ),
    make_trial(
        ways.commit_up_to_a_failure,
        AT_LEAST_ONCE,
        lambda crash: Fates(twice=crash.dies_after - find_begin_after_failure(crash)),
    ),
    make_trial(ways.write_by_source, EXACTLY_ONCE),
    make_trial(ways.store_offset_with_effects, EXACTLY_ONCE),
    Trial(name="send in transaction", level=EXACTLY_ONCE, kill=kill_sender),
    make_trial(ways.consume_as_the_shop, EXACTLY_ONCE),
    Trial(
        name="Spark with an epoch",
        level=EXACTLY_ONCE,
        kill=partial(kill_query, write=spark_sink.write_with_epoch),
    ),
    Trial(
        name="Spark without an epoch",
        level=AT_LEAST_ONCE,
        leads_to=lambda crash: Fates(twice=to_spark(crash).end - to_spark(crash).begin),
        kill=partial(kill_query, write=spark_sink.write_rows),
    ),
)
CONTROLS = (
    make_trial(ways.commit_automatically_at_once, AT_LEAST_ONCE),
    make_trial(ways.commit_automatically_and_late, AT_MOST_ONCE),
    make_trial(ways.commit_before, AT_LEAST_ONCE),
    make_trial(ways.commit_after, EXACTLY_ONCE),
    make_trial(ways.commit_past_a_failure, AT_LEAST_ONCE),
    make_trial(ways.store_offset_of_last, EXACTLY_ONCE),
    Trial(
        name="send in transaction, read uncommitted",
        level=EXACTLY_ONCE,
        kill=partial(kill_sender, isolation_level="read_uncommitted"),
    ),
    Trial(
        name="Spark without an epoch",
        level=EXACTLY_ONCE,
        kill=partial(kill_query, write=spark_sink.write_rows),
    ),
)
