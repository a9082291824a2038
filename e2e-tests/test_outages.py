"""An outage of the broker: no registration fails, and after it nothing is missing."""

import asyncio
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from local_stack import figures
from local_stack.figures import Figure
from local_stack.progress import tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from test_support.system.registering import (
    Registration,
    first_deliveries,
    register_until,
    versions_of,
)
from test_support.system.stack import Stack

OUTAGE_SECONDS = float(os.environ.get("HOMETOWN_OUTAGE_SECONDS", "10"))
BESIDE_SECONDS = min(OUTAGE_SECONDS / 4, 10)
"""How long registrations run before the outage, and after it."""
CLIENTS = 2
RELAY_GROWTH_MEBIBYTES_MAX = 64
"""The memory by which the relay may grow: two pages of rows, and the same as records."""
MEBIBYTE = 1 << 20
POLL_SECONDS = 0.5

RELAY = "users-relay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The time without a broker, on the monotonic clock."""

    began_at: float
    ended_at: float


async def outage(stack: Stack) -> Outage:
    """Stop the broker for OUTAGE_SECONDS; it is ready again when this returns."""
    await asyncio.to_thread(stack.stop, ["kafka"])
    began_at = time.monotonic()
    try:
        await asyncio.sleep(OUTAGE_SECONDS)
    finally:
        ended_at = time.monotonic()
        await asyncio.to_thread(stack.start, ["kafka"])
    return Outage(began_at=began_at, ended_at=ended_at)


async def watch_memory(stack: Stack, stopping: asyncio.Event, seen: list[int]) -> None:
    """Sample the relay's memory, in bytes."""
    while not stopping.is_set():
        seen.append(await asyncio.to_thread(stack.memory_bytes, RELAY))
        await asyncio.sleep(POLL_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happened around an outage; `memory` is the relay's, in bytes."""

    registrations: Sequence[Registration]
    outage: Outage
    memory: Sequence[int]

    @property
    def growth_mebibytes(self) -> float:
        return (max(self.memory) - self.memory[0]) / MEBIBYTE


async def register_around_an_outage(stack: Stack) -> Story:
    """Fails if a request fails, or if the relay ends."""
    registrations: list[Registration] = []
    memory: list[int] = []
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(watch_memory(stack, stopping, memory))
        for _ in range(CLIENTS):
            tasks.create_task(register_until(stack, stopping, registrations))
        await asyncio.sleep(BESIDE_SECONDS)
        happened = await outage(stack)
        await asyncio.sleep(BESIDE_SECONDS)
        stopping.set()
    return Story(registrations=registrations, outage=happened, memory=memory)


def percentile(values: Sequence[float], part: float) -> float:
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def latency_figures(name: str, registrations: Sequence[Registration]) -> list[Figure]:
    milliseconds = [1_000 * (each.answered_at - each.sent_at) for each in registrations]
    return [
        Figure(name=f"registered {name}", value=len(registrations), unit="1"),
        *(
            Figure(
                name=f"registration p{part} {name}",
                value=round(percentile(milliseconds, part / 100), 1),
                unit="ms",
            )
            for part in (50, 99)
        ),
    ]


def test_no_registration_fails_without_a_broker_and_nothing_is_missing_afterwards(
    stack: Stack,
) -> None:
    relay = stack.lives()[RELAY]
    story = asyncio.run(register_around_an_outage(stack))
    last_answer_at = time.monotonic()
    users = [each.user_id for each in story.registrations]
    versions = asyncio.run(versions_of(stack.brokers, users))
    all_read_at = time.monotonic()

    began_at, ended_at = story.outage.began_at, story.outage.ended_at
    before = [each for each in story.registrations if each.answered_at < began_at]
    during = [each for each in story.registrations if began_at <= each.answered_at < ended_at]
    after = [each for each in story.registrations if each.answered_at >= ended_at]
    record(
        [
            Figure(name="outage", value=OUTAGE_SECONDS, unit="s"),
            *latency_figures("before", before),
            *latency_figures("during", during),
            *latency_figures("after", after),
            Figure(name="last answer until all read", value=all_read_at - last_answer_at, unit="s"),
            Figure(name="relay's growth", value=round(story.growth_mebibytes, 1), unit="MiB"),
        ]
    )

    assert before
    assert during, "registrations went on without the broker"
    assert first_deliveries(versions) == {each.user_id: [1, 2] for each in story.registrations}
    assert stack.lives()[RELAY] == relay, "the relay went on"
    assert story.growth_mebibytes <= RELAY_GROWTH_MEBIBYTES_MAX


def record(measured: Sequence[Figure]) -> None:
    folder = RunFolder(Settings().run_dir)
    folder.create()
    figures.write(folder, "outage", measured)
    for figure in measured:
        tell(f"{figure.name:<28} {figure.value:>10.1f} {figure.unit}")
