"""The steps of a drill. Each has its load, and returns how long the recovery took."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from local_stack import issuer
from local_stack.backup import backup, restore
from local_stack.postgres import dsn
from local_stack.republishing import republish
from local_stack.status import as_found
from shared.messaging.topics import TOPICS
from shared.runtime.declarations import API, RELAY, load_declarations
from test_support.power_cut import cut_power
from verification.drill import releases
from verification.drill.drilled_stack import JOB, SMALL_DISKS, DrilledStack
from verification.drill.hostile_records import Author, Writer, compare, read_ends
from verification.drill.small_disk import NoSmallDisk, filled
from verification.drill.traffic import Recovery, Traffic

BEFORE_SECONDS = 1.0
"""Load before the fault or operation of a step, and after its recovery."""
FREEZE_SECONDS = 13.0
"""More than the time after which an API gives up on its database."""
JOINS = 10
JOINED_SECONDS = 2.0
FULL_SECONDS = 10.0
LOST_BATCHES = 2
"""Of each partition, in a power cut."""
HOSTILE_GROUPS = 50
"""Of records, to each topic."""
HOSTILE_SECONDS_MAX = 120.0
"""In which each record has its end after the last one was written."""
HOSTILE_POLL_SECONDS = 1.0
HOSTILE_SHOWN_MAX = 10
FROZEN_RESPONSE_SECONDS_MAX = 30.0
"""In which an API has to respond while a server does not: it gives up on a connection and on a
statement after 10 s each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """What a step works on. `folder` is for its files, `previous` the commit of the release before
    this one. `seed` is of what a step chooses."""

    stack: DrilledStack
    traffic: Traffic
    folder: Path
    previous: str | None = None
    seed: int = 1


class Refuted(Exception):
    """What a step expects was not the case; the message names it."""


class Skipped(Exception):
    """The step cannot be done here; the message is the reason."""


Play = Callable[[Drill], Awaitable[Recovery]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`is_planned`: an operation during which no request can fail; otherwise clients repeat."""

    name: str
    does: str
    play: Play
    is_planned: bool = False


APIS, RELAYS, WORKERS = map(load_declarations().names_of, (API, RELAY, "worker"))


async def restore_backup(drill: Drill) -> Recovery:
    """Back up, go on, destroy everything, restore. What came after the backup is lost."""
    stack, traffic = drill.stack, drill.traffic
    backup_folder = drill.folder / "backup"
    async with traffic.flowing():
        await asyncio.sleep(BEFORE_SECONDS)
    await stack.settle(traffic.ledger)
    await asyncio.to_thread(backup, stack.settings, backup_folder)
    as_of_backup = traffic.ledger.copy()
    async with traffic.flowing():
        await asyncio.sleep(BEFORE_SECONDS)
    began = time.monotonic()
    await asyncio.to_thread(stack.destroy)
    await asyncio.to_thread(restore, stack.spec, stack.settings, backup_folder)
    traffic.ledger, traffic.hometown = as_of_backup, stack.hometown
    restored = time.monotonic() - began
    async with traffic.flowing():
        recovery = await traffic.recover()
    return recovery.after(restored)


def replace_each(names: Sequence[str]) -> Play:
    """Replace these processes, one after the other."""

    async def play(drill: Drill) -> Recovery:
        async def act() -> None:
            for name in names:
                await asyncio.to_thread(drill.stack.replace, name)

        return await under_load(drill, act)

    return play


def kill_all(names: Sequence[str]) -> Play:
    """kill -9 of these processes at once."""

    async def play(drill: Drill) -> Recovery:
        async def act() -> None:
            for name in names:
                drill.stack.kill(name)

        return await under_load(drill, act)

    return play


def freeze(name: str) -> Play:
    """Stop a server for FREEZE_SECONDS without ending it."""

    async def play(drill: Drill) -> Recovery:
        async def act() -> None:
            with drill.stack.frozen(name):
                await asyncio.sleep(FREEZE_SECONDS)

        recovery = await under_load(drill, act)
        slowest = drill.traffic.tally.slowest_seconds
        if slowest > FROZEN_RESPONSE_SECONDS_MAX:
            raise Refuted(f"a response took {slowest:.0f} s")
        return recovery

    return play


def join(names: Sequence[str], times: int) -> Play:
    """Let a second process of each program join its consumer group and leave it, again and again.

    It is refuted when the first process has ended.
    """

    async def play(drill: Drill) -> Recovery:
        def join_and_leave(name: str) -> None:
            for _ in range(times):
                with drill.stack.joined(name):
                    time.sleep(JOINED_SECONDS)

        async def act() -> None:
            await asyncio.gather(*(asyncio.to_thread(join_and_leave, name) for name in names))

        return await unended(drill, names, act)

    return play


def freeze_one_of_two(names: Sequence[str]) -> Play:
    """Stop the first of two processes of a consumer group, one program after the other."""

    async def play(drill: Drill) -> Recovery:
        def freeze_first(name: str) -> None:
            with drill.stack.joined(name):
                with drill.stack.frozen(name):
                    time.sleep(FREEZE_SECONDS)
                time.sleep(JOINED_SECONDS)

        async def act() -> None:
            for name in names:
                await asyncio.to_thread(freeze_first, name)

        return await unended(drill, names, act)

    return play


async def unended(
    drill: Drill, names: Sequence[str], act: Callable[[], Awaitable[None]]
) -> Recovery:
    """Act under load. Raises Refuted: one of these processes ended meanwhile."""
    before = {name: drill.stack.programs[name].pid for name in names}
    recovery = await under_load(drill, act)
    for name in names:
        if drill.stack.programs[name].pid != before[name]:
            raise Refuted(f"{name} ended while another one joined its group or left it")
    return recovery


async def under_load(drill: Drill, act: Callable[[], Awaitable[None]]) -> Recovery:
    """Act while the clients work; an order is placed at the same time."""
    async with drill.traffic.flowing():
        await asyncio.sleep(BEFORE_SECONDS)
        acting = asyncio.ensure_future(act())
        await asyncio.sleep(0)  # it begins first
        try:
            recovery = await drill.traffic.recover()
        finally:
            await acting
        await asyncio.sleep(BEFORE_SECONDS)
    return recovery


async def lose_records(drill: Drill) -> Recovery:
    """The broker loses the newest records of the orders; `make republish` repairs it."""
    stack = drill.stack

    async def act() -> None:
        await asyncio.to_thread(cut_power, as_found(stack.settings), "orders.v1", LOST_BATCHES)
        await asyncio.to_thread(republish, stack.spec, stack.settings)

    return await under_load(drill, act)


def fill_disk(name: str) -> Play:
    """Fill the disk of a process; there is room again later."""

    async def play(drill: Drill) -> Recovery:
        async def act() -> None:
            with filled(drill.stack.folder / SMALL_DISKS[name]):
                await asyncio.sleep(FULL_SECONDS)

        try:
            await asyncio.to_thread(drill.stack.move_to_small_disks)
        except NoSmallDisk as error:
            raise Skipped(str(error)) from error
        return await under_load(drill, act)

    return play


async def write_hostile_records(drill: Drill) -> Recovery:
    """Write records to each topic that no service writes.

    It is refuted unless each reader gives each of them its one end, and no other record one.
    """
    stack, chance = drill.stack, Random(drill.seed)
    context = as_found(stack.settings)
    servers = context.address("kafka")
    databases = {
        each.name: dsn(context, service.name)
        for service in load_declarations().services
        for each in service.processes.values()
        if each.name in WORKERS
    }
    writer = Writer(servers, chance, [*WORKERS, *([JOB] if stack.counts else [])])
    authors = [Author(chance, topic) for topic in TOPICS]
    earlier = await read_ends(servers, databases)

    async def act() -> None:
        for _ in range(HOSTILE_GROUPS):
            for author in authors:
                await writer.write(author.topic, author.make_group())

    recovery = await under_load(drill, act)
    deadline = time.monotonic() + HOSTILE_SECONDS_MAX
    while wrong := compare(writer.expected, await read_ends(servers, databases) - earlier):
        if time.monotonic() > deadline:
            raise Refuted(f"{len(wrong)} ends are wrong: {'; '.join(wrong[:HOSTILE_SHOWN_MAX])}")
        await asyncio.sleep(HOSTILE_POLL_SECONDS)
    return recovery


async def rotate_issuer_key(drill: Drill) -> Recovery:
    """Sign with another key; tokens of the first one are accepted while the second one is used."""

    async def act() -> None:
        issuer.rotate(drill.stack.folder)
        drill.traffic.hometown = drill.stack.hometown
        await asyncio.sleep(BEFORE_SECONDS)

    return await under_load(drill, act)


async def upgrade(drill: Drill) -> Recovery:
    """Run the API, relay and worker of each service from the previous release, then from this one
    again.

    The data are those of this release; its migrations only add.
    """
    if drill.previous is None:
        raise Skipped("there is no tag of a release; --previous REV names a commit")
    stack = drill.stack
    with releases.checked_out(drill.previous, drill.folder / "previous") as python:

        async def act() -> None:
            for service in load_declarations().services:
                names = {each.name for each in service.processes.values()}
                changed = names.intersection(APIS + RELAYS + WORKERS)
                if changed:
                    before = releases.run_with(python, stack.spec, changed)
                    await asyncio.to_thread(stack.up, before)
                    await asyncio.to_thread(stack.up)

        return await under_load(drill, act)


STEPS = (
    Step(
        name="backup-restore",
        does="back up, destroy everything, restore",
        play=restore_backup,
    ),
    Step(
        name="replace-api",
        does="replace each API",
        play=replace_each(APIS),
        is_planned=True,
    ),
    Step(
        name="replace-relay",
        does="replace each relay",
        play=replace_each(RELAYS),
        is_planned=True,
    ),
    Step(
        name="replace-worker",
        does="replace each worker",
        play=replace_each(WORKERS),
        is_planned=True,
    ),
    Step(
        name="join-worker",
        does=f"a second process of each worker joins its group and leaves it, {JOINS} times",
        play=join(WORKERS, JOINS),
        is_planned=True,
    ),
    Step(
        name="freeze-worker",
        does=f"SIGSTOP of one of two workers of a group for {FREEZE_SECONDS:.0f} s",
        play=freeze_one_of_two(WORKERS),
    ),
    Step(name="replace-job", does="replace the job", play=replace_each([JOB]), is_planned=True),
    Step(name="kill-api", does="kill -9 of all APIs", play=kill_all(APIS)),
    Step(name="kill-relay", does="kill -9 of all relays", play=kill_all(RELAYS)),
    Step(name="kill-worker", does="kill -9 of all workers", play=kill_all(WORKERS)),
    Step(name="kill-job", does="kill -9 of the job", play=kill_all([JOB])),
    Step(name="kill-broker", does="kill -9 of the broker", play=kill_all(["kafka"])),
    Step(name="kill-postgres", does="kill -9 of PostgreSQL", play=kill_all(["postgres"])),
    Step(
        name="freeze-postgres",
        does=f"SIGSTOP of PostgreSQL for {FREEZE_SECONDS:.0f} s",
        play=freeze("postgres"),
    ),
    Step(
        name="freeze-broker",
        does=f"SIGSTOP of the broker for {FREEZE_SECONDS:.0f} s",
        play=freeze("kafka"),
    ),
    Step(
        name="lose-records",
        does="a power cut takes the newest records of the broker; make republish",
        play=lose_records,
    ),
    Step(
        name="full-postgres",
        does=f"the disk of PostgreSQL is full for {FULL_SECONDS:.0f} s",
        play=fill_disk("postgres"),
    ),
    Step(
        name="full-broker",
        does=f"the disk of the broker is full for {FULL_SECONDS:.0f} s",
        play=fill_disk("kafka"),
    ),
    Step(
        name="full-job",
        does=f"the disk of the job's checkpoint is full for {FULL_SECONDS:.0f} s",
        play=fill_disk(JOB),
    ),
    Step(
        name="hostile-records",
        does="records that no service writes, on each topic",
        play=write_hostile_records,
        is_planned=True,
    ),
    Step(
        name="rotate-issuer-key",
        does="sign tokens with another key",
        play=rotate_issuer_key,
        is_planned=True,
    ),
    Step(
        name="upgrade",
        does="API, relay, worker of each service as of the previous release, and back",
        play=upgrade,
    ),
)
