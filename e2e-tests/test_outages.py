"""The broker is away, and nobody who registers notices; when it is back, nothing is missing."""

import asyncio
import itertools
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import httpx
import psutil
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from embedded import figures, supervision
from embedded.composition import Composition, Site
from embedded.figures import Figure
from embedded.hometown import HOMETOWN
from embedded.jaeger import JAEGER
from embedded.progress import tell
from embedded.run_folder import RunFolder
from embedded.settings import Settings
from embedded.testing import bearer, throwaway_stack
from shared import messages
from shared.topics import TOPICS
from users_svc.contract import TOPIC

OUTAGE_SECONDS = float(os.environ.get("HOMETOWN_OUTAGE_SECONDS", "10"))
BESIDE_SECONDS = min(OUTAGE_SECONDS, 10)
"""How long registrations go on before the outage, and after it."""
CLIENTS = 4
REQUEST_SECONDS_MAX = 30
BROKER_SECONDS_MAX = 60
DRAIN_SECONDS_MAX = 120
RELAY_GROWTH_MEBIBYTES_MAX = 64
"""What the relay may hold more than before: two pages of rows, and the same as records."""
MEBIBYTE = 1 << 20
POLL_SECONDS = 0.2

USER = {"name": "Jack", "address": "BJ", "gender": "male", "credit_limit": "100.00"}
REGISTERED, MOVED = 201, 200
NEEDED = ("postgres", "kafka", "users-api", "users-relay")
PREPARATIONS = ("users tables", "topics")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One request; instants on the monotonic clock, in seconds."""

    user_id: str
    sent_at: float
    answered_at: float


def composition() -> Composition:
    """PostgreSQL, Kafka, and what a registration meets. Of Jaeger there are only its ports."""
    needed = {process.name: process for process in HOMETOWN.processes if process.name in NEEDED}
    api = needed["users-api"]
    needed["users-api"] = replace(api, ports=(*api.ports, *JAEGER.ports))
    return Composition(
        processes=tuple(needed.values()),
        preparations=tuple(each for each in HOMETOWN.preparations if each.name in PREPARATIONS),
    )


@pytest.fixture
def site() -> Iterator[Site]:
    """A stack of this test alone: the others need their broker."""
    with throwaway_stack(composition()) as site:
        yield site


async def register_until(
    site: Site, stopping: asyncio.Event, registrations: list[Registration]
) -> None:
    """Register users at full speed, and move each of them, so that each has two events."""
    address = f"http://{site.address('users-api')}"
    async with httpx.AsyncClient(
        base_url=address, timeout=REQUEST_SECONDS_MAX, headers=bearer(site.folder, "clerk")
    ) as client:
        while not stopping.is_set():
            sent_at = time.monotonic()
            answer = await client.post("/v1/users", json=USER)
            answered_at = time.monotonic()
            assert answer.status_code == REGISTERED, answer.text
            user_id = answer.json()["user_id"]
            registrations.append(
                Registration(user_id=user_id, sent_at=sent_at, answered_at=answered_at)
            )
            moved = await client.post(f"/v1/users/{user_id}/moves", json={"address": "SH"})
            assert moved.status_code == MOVED, moved.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """When the broker was away, on the monotonic clock."""

    began_at: float
    ended_at: float


async def outage(site: Site) -> Outage:
    """The broker is away for OUTAGE_SECONDS; back when this returns."""
    await change(site, supervision.stop, "kafka", "STOPPED")
    began_at = time.monotonic()
    await asyncio.sleep(OUTAGE_SECONDS)
    ended_at = time.monotonic()
    await change(site, supervision.start, "kafka", "RUNNING")
    return Outage(began_at=began_at, ended_at=ended_at)


async def change(
    site: Site, command: Callable[[RunFolder, str], None], name: str, state: str
) -> None:
    """Start or stop a process, and wait until its supervisor says `state`."""
    await asyncio.to_thread(command, site.folder, name)
    async with asyncio.timeout(BROKER_SECONDS_MAX):
        while (await asyncio.to_thread(program, site, name)).state != state:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)


def program(site: Site, name: str) -> supervision.Program:
    return (supervision.programs(site.folder) or {})[name]


async def watch_memory(process: psutil.Process, stopping: asyncio.Event, seen: list[int]) -> None:
    """Resident bytes, again and again. Raises psutil.NoSuchProcess if it ends."""
    while not stopping.is_set():
        seen.append(process.memory_info().rss)
        await asyncio.sleep(POLL_SECONDS)


async def versions_of(site: Site, users: Sequence[str]) -> Mapping[str, list[int]]:
    """The versions of each user's events in the order of users.v1, read until all are there."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=site.address("kafka"), auto_offset_reset="earliest"
    )
    versions: dict[str, list[int]] = defaultdict(list)
    waiting = {(user, version) for user in users for version in (1, 2)}
    await consumer.start()
    try:
        partitions = range(TOPICS[TOPIC].partitions)
        consumer.assign([TopicPartition(TOPIC, number) for number in partitions])
        async with asyncio.timeout(DRAIN_SECONDS_MAX):
            while waiting:
                batches = await consumer.getmany(timeout_ms=200)
                for record in itertools.chain.from_iterable(batches.values()):
                    version = int(dict(record.headers)[messages.STREAM_VERSION])
                    versions[record.key.decode()].append(version)
                    waiting.discard((record.key.decode(), version))
    finally:
        await consumer.stop()
    return versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happened around an outage; `memory` is the relay's, in bytes."""

    registrations: Sequence[Registration]
    outage: Outage
    memory: Sequence[int]

    @property
    def growth_mebibytes(self) -> float:
        return (max(self.memory) - self.memory[0]) / MEBIBYTE


async def register_around_an_outage(site: Site) -> Story:
    """A request that fails ends it, and so does a relay that ends."""
    registrations: list[Registration] = []
    memory: list[int] = []
    stopping = asyncio.Event()
    relay = psutil.Process(program(site, "users-relay").pid)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(watch_memory(relay, stopping, memory))
        for _ in range(CLIENTS):
            tasks.create_task(register_until(site, stopping, registrations))
        await asyncio.sleep(BESIDE_SECONDS)
        happened = await outage(site)
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


def test_nobody_notices_that_the_broker_is_away_and_nothing_is_missing_afterwards(
    site: Site,
) -> None:
    story = asyncio.run(register_around_an_outage(site))
    last_answer_at = time.monotonic()
    versions = asyncio.run(versions_of(site, [each.user_id for each in story.registrations]))
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
    first_deliveries = {user: list(dict.fromkeys(each)) for user, each in versions.items()}
    assert first_deliveries == {each.user_id: [1, 2] for each in story.registrations}
    assert story.growth_mebibytes <= RELAY_GROWTH_MEBIBYTES_MAX


def record(measured: Sequence[Figure]) -> None:
    folder = RunFolder(Settings().run_dir)
    folder.create()
    figures.write(folder, "outage", measured)
    for figure in measured:
        tell(f"{figure.name:<28} {figure.value:>10.1f} {figure.unit}")
