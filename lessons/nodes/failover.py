"""Two workers of the pipeline under load: one is killed, later the other one is started again."""

import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from lessons.broker import Topics
from lessons.lesson import Record
from lessons.nodes.pipeline import ACTIVITY, ANALYSIS, CLEAN, PARTITIONS, get_changelog

ALL = list(range(PARTITIONS))
USERS = 40
BEFORE = 600
"""Activities that are counted before the load begins; one of ten has no user."""
LOAD_PER_SECOND = 100
LOAD_SECONDS = 2.5
"""Of load before one is killed, and after the other one counts all."""
TICK_SECONDS = 0.1
POLL_SECONDS = 0.1
WAIT_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 30.0
SETTLED_POLLS = 5
"""So often in a row all must have been read; longer than an effect can come after its commit."""
BARS = "▁▂▃▄▅▆▇█"


@dataclass(kw_only=True)
class Worker:
    """A process, and the state that it printed last."""

    process: asyncio.subprocess.Process
    owned: Sequence[int] = ()
    again: int = 0
    copied: int = 0
    counted: Mapping[str, int] = field(default_factory=dict)
    """By partition."""
    committed_early: int = 0

    async def follow(self) -> None:
        assert self.process.stdout
        async for line in self.process.stdout:
            for name, value in json.loads(line).items():
                setattr(self, name, value)

    def has_counted(self, partitions: Sequence[int], before: Mapping[str, int]) -> bool:
        """Whether there are new counts in each of these."""
        return all(self.counted.get(str(each), 0) > before.get(str(each), 0) for each in partitions)

    async def end(self, act: Callable[[], None]) -> None:
        """Kill or stop it; it has ended when this returns."""
        if self.process.returncode is None:
            act()
        await asyncio.wait_for(self.process.wait(), STOP_SECONDS_MAX)


@dataclass(kw_only=True)
class Trial:
    """What a trial is about, and what is found."""

    name: str
    standbys: int = 0
    keeps_folder: bool = True
    is_early: bool = False
    """Whether clean acknowledges a record before its effect."""
    before: Sequence[Sequence[int]] = ()
    after: Sequence[int] = ()
    seconds: float = 0.0
    """From the kill until the other one has counted in each partition."""
    again: int = 0
    """Changes of counts that were read when one had been killed."""
    seconds_to_restart: float = 0.0
    again_at_restart: int = 0
    changes: int = 0
    """All changes of counts that were there at the restart."""
    sent: int = 0
    counted: int = 0
    per_second: list[int] = field(default_factory=list)

    @property
    def prefix(self) -> str:
        return f"lesson.nodes.{self.name}."

    @property
    def bar(self) -> str:
        """A character for each second of load: the highest one is all of it, or more."""
        highest = len(BARS) - 1
        return "".join(
            BARS[min(highest, highest * each // LOAD_PER_SECOND)] for each in self.per_second
        )


async def try_failover(topics: Topics, trial: Trial) -> None:
    """Two workers, load, one is killed; with a restart of the other one."""
    names = [f"{trial.prefix}{name}" for name in (ACTIVITY, CLEAN, ANALYSIS)]
    await topics.create(dict.fromkeys([*names, get_changelog(trial.prefix)], PARTITIONS))
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hometown-lesson-")))
        killed, other = [
            await stack.enter_async_context(start(topics.servers, trial, folder / name))
            for name in ("one", "two")
        ]
        await wait_until(lambda: len(killed.owned) == len(other.owned) == PARTITIONS // 2)
        await publish(topics, trial, BEFORE)
        await wait_until_counted(topics, trial)
        if trial.standbys:
            await wait_until(lambda: killed.copied + other.copied >= trial.sent)
        trial.before = [killed.owned, other.owned]
        async with load(topics, trial):
            began_at = time.time()
            await asyncio.sleep(LOAD_SECONDS)
            if trial.is_early:
                await wait_for_early_commit(killed)
            killed_at = time.monotonic()
            await killed.end(killed.process.kill)
            before, again = other.counted, other.again
            await wait_until(lambda: list(other.owned) == ALL)
            await wait_until(lambda: other.has_counted(killed.owned, before))
            trial.seconds = time.monotonic() - killed_at
            trial.after, trial.again = other.owned, other.again - again
            await asyncio.sleep(LOAD_SECONDS)
            ended_at = time.time()
        await wait_until_counted(topics, trial)
        trial.per_second = await count_per_second(topics, trial, began_at, ended_at)
        await restart(topics, trial, other, folder / "two")
        trial.counted = await count(topics, trial)


async def restart(topics: Topics, trial: Trial, worker: Worker, folder: Path) -> None:
    """The only worker is stopped, and starts again with its tables, or without them."""
    if trial.is_early:
        return
    places = [TopicPartition(get_changelog(trial.prefix), number) for number in ALL]
    trial.changes = sum((await topics.get_ends(places)).values())
    await worker.end(worker.process.terminate)
    if not trial.keeps_folder:
        await asyncio.to_thread(shutil.rmtree, folder)
    began_at = time.monotonic()
    async with start(topics.servers, trial, folder) as again:
        await wait_until(lambda: list(again.owned) == ALL)
        trial.seconds_to_restart = time.monotonic() - began_at
        trial.again_at_restart = again.again
        await publish(topics, trial, LOAD_PER_SECOND)
        await wait_until_counted(topics, trial)


@asynccontextmanager
async def start(servers: str, trial: Trial, folder: Path) -> AsyncIterator[Worker]:
    """A worker, which is killed at the end."""
    words = [servers, trial.prefix, str(folder), str(trial.standbys)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lessons.nodes.child", *words),
        *(["early"] if trial.is_early else []),
        stdout=asyncio.subprocess.PIPE,
    )
    worker = Worker(process=process)
    following = asyncio.create_task(worker.follow())
    try:
        yield worker
    finally:
        await worker.end(process.kill)
        await following


async def wait_until(is_so: Callable[[], bool]) -> None:
    """Raises TimeoutError if it is not, within WAIT_SECONDS_MAX."""
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not is_so():  # noqa: ASYNC110 - the state is that of another process
            await asyncio.sleep(POLL_SECONDS / 2)


async def wait_for_early_commit(worker: Worker) -> None:
    """Until it has just committed records that have no effect yet."""
    seen = worker.committed_early
    await wait_until(lambda: worker.committed_early > seen)


async def publish(topics: Topics, trial: Trial, activities: int) -> None:
    records = [to_record(number) for number in range(activities)]
    await topics.publish(trial.prefix, records)
    trial.sent += sum(record.key is not None for record in records)


def to_record(number: int) -> Record:
    """An activity as a page sends it: not clean yet, and each tenth is that of no user."""
    if number % 10 == 0:
        return Record(topic=ACTIVITY, key=None, value=" ,CRAWL")
    user = f"user-{number % USERS}"
    return Record(topic=ACTIVITY, key=user, value=f"  {user.title()}, CLICK")


@asynccontextmanager
async def load(topics: Topics, trial: Trial) -> AsyncIterator[None]:
    """Activities are published all the time, until the end."""

    async def run() -> None:
        begin, ticks = time.monotonic(), 0
        while not ended.is_set():
            await publish(topics, trial, round(LOAD_PER_SECOND * TICK_SECONDS))
            ticks += 1
            await asyncio.sleep(max(0.0, begin + ticks * TICK_SECONDS - time.monotonic()))

    ended = asyncio.Event()
    running = asyncio.create_task(run())
    try:
        yield
    finally:
        ended.set()
        await running


async def wait_until_counted(topics: Topics, trial: Trial) -> None:
    """Until all that was sent has been read and acknowledged, in both steps."""

    async def is_unread() -> bool:
        done = await topics.admin.list_consumer_group_offsets(f"{trial.prefix}pipeline")
        read = [
            TopicPartition(f"{trial.prefix}{name}", number)
            for name in (ACTIVITY, CLEAN)
            for number in ALL
        ]
        ends = await topics.get_ends(read)
        return any(end and (p not in done or done[p].offset < end) for p, end in ends.items())

    async with asyncio.timeout(WAIT_SECONDS_MAX):
        await wait_until_settled(is_unread)


async def wait_until_settled(is_unread: Callable[[], Awaitable[bool]]) -> None:
    settled = 0
    while settled < SETTLED_POLLS:
        settled = 0 if await is_unread() else settled + 1
        await asyncio.sleep(POLL_SECONDS)


async def count(topics: Topics, trial: Trial) -> int:
    """The sum of the last counts of all users."""
    records = await read_all(topics, f"{trial.prefix}{ANALYSIS}")
    last = {record.key: int(record.value) for record in records}
    return sum(last.values())


async def count_per_second(
    topics: Topics, trial: Trial, began_at: float, ended_at: float
) -> list[int]:
    """Counts that were sent in each second."""
    found = Counter(
        int(record.timestamp / 1000 - began_at)
        for record in await read_all(topics, f"{trial.prefix}{ANALYSIS}")
        if began_at <= record.timestamp / 1000
    )
    return [found[second] for second in range(int(ended_at - began_at))]


async def read_all(topics: Topics, topic: str) -> list[ConsumerRecord]:
    """The records of all partitions, those of each in their order."""
    places = [TopicPartition(topic, number) for number in ALL]
    found: list[ConsumerRecord] = []
    async with AIOKafkaConsumer(bootstrap_servers=topics.servers) as consumer:
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        ends = await consumer.end_offsets(places)
        for place in places:
            while await consumer.position(place) < ends[place]:
                for batch in (await consumer.getmany(timeout_ms=200)).values():
                    found += batch
    return found
