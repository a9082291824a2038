"""What is killed and frozen in a run: planned from the seed, done while records flow."""

import asyncio
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import psutil

from local_stack import supervision
from local_stack.run_folder import RunFolder
from shared.runtime.postgres import Connection
from verification.stress.relays import Relays

RELAY_KILLS = (2, 3)
STANDBY_SHARE = 0.5
FLOWING_SHARE = 0.8
"""The share of blows that wait until records flow again; the others hit a recovering system."""
PAUSE_SECONDS_MAX = 1.5
FREEZE_PARTS = (0.05, 0.3)
FREEZE_SECONDS_MAX = 8.0
"""Longer than a lease, so that a frozen relay can wake after it has lost its lease."""
LAST_PART = 0.6
"""At this part of a run all remaining blows are dealt at once, so that a rest can follow."""

CHECKPOINTS = 3
"""Records flow when the relay has stored this many checkpoints; the first can be an old one."""
REST_SECONDS = 1.0
POLL_SECONDS = 0.05

PROGRESS = """
    SELECT published_xmax::text, published_xip::text, target::text, floor_position FROM relay
"""


class Blow(Enum):
    KILL_RELAY = "relay killed"
    FREEZE_RELAY = "relay frozen"
    KILL_BROKER = "broker killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One blow, `pause_seconds` after the last one, or after records flow again."""

    blow: Blow
    when_flowing: bool
    pause_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    standby: bool = False
    freeze_seconds: float = 0.0
    steps: Sequence[Step] = ()
    seconds: float = 0.0
    """Of the whole run."""


CALM = Plan()


@dataclass(slots=True, kw_only=True)
class Disturbed:
    """When it happened, in seconds since 1970."""

    struck_at: list[float] = field(default_factory=list)
    at_rest_since: float = 0.0


def create_plan(chance: random.Random, seconds: float) -> Plan:
    """Two or three killed relays, one frozen one, and one killed broker, in any order."""
    blows = [Blow.KILL_RELAY] * chance.choice(RELAY_KILLS) + [Blow.FREEZE_RELAY, Blow.KILL_BROKER]
    chance.shuffle(blows)
    return Plan(
        standby=chance.random() < STANDBY_SHARE,
        freeze_seconds=min(chance.uniform(*FREEZE_PARTS) * seconds, FREEZE_SECONDS_MAX),
        steps=[
            Step(
                blow=blow,
                when_flowing=chance.random() < FLOWING_SHARE,
                pause_seconds=chance.uniform(0, PAUSE_SECONDS_MAX),
            )
            for blow in blows
        ],
        seconds=seconds,
    )


async def carry_out(
    plan: Plan, relays: Relays, folder: RunFolder, connection: Connection
) -> Disturbed:
    """Take the steps one after another, then wait until records flow again."""
    disturbed = Disturbed(at_rest_since=time.time())
    began = time.monotonic()
    last_at, end_at = began + LAST_PART * plan.seconds, began + plan.seconds
    if plan.standby:
        await relays.start()
    for step in plan.steps:
        if step.when_flowing:
            await wait_until_flowing(connection, last_at)
        await asyncio.sleep(min(step.pause_seconds, max(0, last_at - time.monotonic())))
        await strike(step.blow, plan, relays, folder, disturbed)
    if plan.steps:
        await wait_until_flowing(connection, end_at)
        disturbed.at_rest_since = time.time() + REST_SECONDS
    return disturbed


async def strike(
    blow: Blow, plan: Plan, relays: Relays, folder: RunFolder, disturbed: Disturbed
) -> None:
    """Each time is noted just before the blow, since its effects follow at once."""
    disturbed.struck_at.append(time.time())
    match blow:
        case Blow.KILL_RELAY:
            await relays.kill_active()
        case Blow.FREEZE_RELAY:
            frozen = await relays.freeze_active()
            await asyncio.sleep(plan.freeze_seconds)
            disturbed.struck_at.append(time.time())
            frozen.send_signal(signal.SIGCONT)  # it can send what it held
        case Blow.KILL_BROKER:
            await asyncio.to_thread(kill_broker, folder)


async def wait_until_flowing(connection: Connection, deadline: float) -> None:
    """Until the relay makes progress, or the monotonic clock reaches `deadline`."""
    seen = {tuple(await connection.fetchrow(PROGRESS) or ())}
    while len(seen) <= CHECKPOINTS and time.monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        seen.add(tuple(await connection.fetchrow(PROGRESS) or ()))


def kill_broker(folder: RunFolder) -> None:
    """kill -9; its supervisor starts it again."""
    programs = supervision.programs(folder) or {}
    psutil.Process(programs["kafka"].pid).kill()
