"""Ways are killed while they read, and read on: what had an effect, and how often."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import asyncpg

from lessons import spark_engine
from lessons.broker import Topics
from lessons.committing import child, reader, spark_sink, ways
from lessons.committing.crash import Crash
from lessons.committing.reader import Life, Moment
from lessons.lab import Lab
from lessons.lesson import Record
from local_stack.progress import tell

LIFE_SECONDS_MAX = 300.0
PROGRAM_SECONDS_MAX = 30.0
"""Of a learner, with 300 numbers."""
SPARK_BATCHES_MAX = 10
"""Each takes a third of a second."""

CREATE_TABLES = reader.CREATE_TABLES + child.CREATE_TABLE + spark_sink.CREATE_TABLE
FIND_EFFECTS = "SELECT number FROM effects WHERE way = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where trials are made: a database of their own, and topics and groups with a prefix."""

    lab: Lab
    topics: Topics
    dsn: str
    prefix: str
    crash: Crash

    @property
    def numbers(self) -> str:
        """The topic of the numbers, without the prefix."""
        return f"numbers-{self.crash.numbers}"

    def make_life(self, program: Path, way: str, name: str) -> Life:
        """One that ends by itself."""
        return Life(
            program=program,
            way=way,
            name=name,
            group=f"{self.prefix}{to_topic(name)}",
            servers=self.topics.servers,
            dsn=self.dsn,
            topic=f"{self.prefix}{self.numbers}",
            every=self.crash.every,
        )

    async def find(self, query: str, name: str) -> list[int]:
        """The first column of what a query finds for a name."""
        connection = await asyncpg.connect(self.dsn)
        try:
            return [row[0] for row in await connection.fetch(query, name)]
        finally:
            await connection.close()


Kill = Callable[[Place, str], Awaitable[Sequence[int]]]
"""Lets a way of some name read, be killed, and read to the end; returns the numbers that had an
effect, each as often as it had one."""


async def publish_numbers(place: Place) -> None:
    await place.topics.create([f"{place.prefix}{place.numbers}"])
    numbers = range(1, place.crash.numbers + 1)
    records = [Record(topic=place.numbers, value=str(number)) for number in numbers]
    await place.topics.publish(place.prefix, records)


async def kill_reader(place: Place, name: str, way: str | None = None) -> Sequence[int]:
    """A way whose effects are rows."""
    await live_twice(place, name, way or name)
    return await place.find(FIND_EFFECTS, name)


async def kill_sender(
    place: Place, name: str, isolation_level: str = "read_committed"
) -> Sequence[int]:
    """A way whose effects are records, as seen by a reader of these."""
    out = f"{place.prefix}{to_topic(name)}"
    await place.topics.create([out])
    await live_twice(place, name, "send in transaction")
    async with place.topics.open_reader(out, isolation_level) as sent:
        return await sent.read_to_end()


def to_topic(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


async def live_twice(place: Place, name: str, way: str) -> None:
    """Raises RuntimeError if the first life does not end as planned."""
    tell(f"committing: {name}")
    life = place.make_life(Path(ways.__file__), way.replace(" ", "_"), name)
    if not await live(life.model_copy(update={"dies_after": place.crash.dies_after})):
        raise RuntimeError(f"{name} has no effect of number {place.crash.dies_after}")
    await live(life)


async def live(life: Life, seconds_max: float = LIFE_SECONDS_MAX) -> bool:
    """Run a process, and return whether it was killed.

    Raises:
        TimeoutError: it has not ended.
        NotImplementedError: the way is still to write.
        RuntimeError: it failed.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", child.__name__),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds_max):
            _, errors = await process.communicate(life.model_dump_json().encode())
    except TimeoutError:
        raise TimeoutError(f"{life.way} has not ended in {seconds_max:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == child.UNWRITTEN:
        raise NotImplementedError
    if process.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(errors.decode())
    return process.returncode != 0


async def kill_program(place: Place, name: str, program: Path) -> Sequence[int]:
    """A learner's function, which is killed in an effect, and before and after what it remembers.

    Raises RuntimeError if it has no effect of the first kind.
    """
    life = place.make_life(program, name, name)
    number = place.crash.dies_after
    if not await live(life.model_copy(update={"dies_after": number}), PROGRAM_SECONDS_MAX):
        raise RuntimeError(f"{name} has no effect of number {number}: have it by reader.process")
    for moment in (*Moment, None):
        await live(life.model_copy(update={"dies_at": moment}), PROGRAM_SECONDS_MAX)
    return await place.find(FIND_EFFECTS, name)


async def kill_query(place: Place, name: str, write: spark_sink.Write) -> Sequence[int]:
    """A query of Spark. An error in its sink ends it where kill -9 would: `make crashes` does."""
    tell(f"committing: {name}")
    records = spark_engine.read_records(
        place.lab.session,
        place.topics.servers,
        place.prefix,
        [place.numbers],
        {"maxOffsetsPerTrigger": str(to_spark(place.crash).every)},
    )
    sinks = [
        spark_sink.Sink(write=write, dsn=place.dsn, name=name, dies_after=dies_after)
        for dies_after in (place.crash.dies_after, None)
    ]
    await spark_sink.read_twice(records, sinks)
    return await place.find(FIND_EFFECTS, name)


def to_spark(crash: Crash) -> Crash:
    """In a few batches only."""
    return replace(crash, every=max(crash.every, crash.numbers // SPARK_BATCHES_MAX))
