"""A worker is killed, one starts again, members come and groups begin: what is read, and by which
of them?"""

import asyncio
from collections.abc import Sequence

from lessons.broker import PREFIX, open_topics
from lessons.experiment import Finding, Lab
from lessons.nodes import groups
from lessons.nodes.failover import ALL, BEFORE, Trial, try_failover

FEW = BEFORE // 6
"""Changes of counts: what is read again where there is a copy of a table."""


def run(lab: Lab) -> Sequence[Finding]:
    return asyncio.run(find(lab.servers))


def run_controls(lab: Lab) -> Sequence[Finding]:
    """A worker that acknowledges before the effect, and a group that begins at the end."""
    return asyncio.run(find_without(lab.servers))


async def find(servers: str) -> list[Finding]:
    without = Trial(name="no-standby")
    standby = Trial(name="standby", standbys=1, keeps_folder=False)
    async with open_topics(servers) as topics:
        await topics.remove(f"{PREFIX}nodes.")
        try:
            async with asyncio.TaskGroup() as tasks:
                for trial in (without, standby):
                    tasks.create_task(try_failover(topics, trial))
                assignments = tasks.create_task(groups.find_assignments(topics))
                begins = tasks.create_task(groups.find_begins(topics))
            return [
                judge_kill("killed, no standby", without, reads_few=False),
                judge_kill("killed, with a standby", standby, reads_few=True),
                judge_restart("started again with its folder", without),
                judge_restart("started again without it", standby),
                judge_totals(without),
                judge_totals(standby),
                *assignments.result(),
                *groups.find_assignors(),
                *begins.result(),
            ]
        finally:
            await topics.remove(f"{PREFIX}nodes.")


async def find_without(servers: str) -> list[Finding]:
    early = Trial(name="early", is_early=True)
    async with open_topics(servers) as topics:
        await topics.remove(f"{PREFIX}nodes.")
        try:
            await try_failover(topics, early)
            return [judge_totals(early), *await groups.claim_all_from_latest(topics)]
        finally:
            await topics.remove(f"{PREFIX}nodes.")


def judge_kill(name: str, trial: Trial, *, reads_few: bool) -> Finding:
    """The other one has all partitions; with a standby it has the counts already."""
    shared = sorted(number for owned in trial.before for number in owned)
    return Finding(
        row={
            "what": name,
            "before": " | ".join(groups.to_text(owned) for owned in trial.before),
            "after": groups.to_text(trial.after),
            "seconds": round(trial.seconds, 1),
            "read again": trial.again,
            "per second": trial.bar,
        },
        claim="the other has all" + (", few counts are read again" if reads_few else ""),
        holds=shared == ALL == list(trial.after) and (trial.again < FEW) == reads_few,
    )


def judge_restart(name: str, trial: Trial) -> Finding:
    """The folder has the tables, and how far their changelogs were read."""
    all_again = trial.again_at_restart >= trial.changes
    few_again = trial.again_at_restart < FEW
    return Finding(
        row={
            "what": name,
            "after": groups.to_text(ALL),
            "seconds": round(trial.seconds_to_restart, 1),
            "read again": trial.again_at_restart,
        },
        claim=f"{'few' if trial.keeps_folder else 'all'} counts are read again",
        holds=few_again if trial.keeps_folder else all_again,
    )


def judge_totals(trial: Trial) -> Finding:
    return Finding(
        row={"what": f"totals, {trial.name}", "sent": trial.sent, "counted": trial.counted},
        claim="counted is what was sent",
        holds=trial.counted == trial.sent,
    )
