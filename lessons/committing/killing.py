"""Ways are killed while they read, and read on: what had an effect, and how often."""

import asyncio
import math
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import asyncpg

from lessons import spark_engine
from lessons.broker import Topics
from lessons.committing import child, reader, spark_sink, ways
from lessons.committing.child import Way
from lessons.committing.crash import Crash
from lessons.committing.reader import Death, Life, Moment
from lessons.lab import Lab
from lessons.lesson import Record
from local_stack.progress import tell

LIFE_SECONDS_MAX = 120
BATCH_SECONDS_MAX = 1
"""Of a life, in addition, for each batch."""
PROGRAM_SECONDS_MAX = 30
"""Of a life of a learner's program, with 300 numbers."""
SPARK_BATCHES_MAX = 10
"""Each takes a third of a second."""

CREATE_TABLES = reader.CREATE_TABLES + child.CREATE_TABLE + spark_sink.CREATE_TABLE
FIND_EFFECTS = "SELECT number FROM effects WHERE way = $1"
NEVER_AWAITED = re.compile(r"(\d+): RuntimeWarning: (.* was never awaited)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a way reads from and has its effects in. Topics and groups begin with the prefix."""

    lab: Lab
    topics: Topics
    dsn: str
    prefix: str
    crash: Crash

    @property
    def numbers(self) -> str:
        """The topic of the numbers, without the prefix."""
        return f"numbers-{self.crash.numbers}"

    async def publish_numbers(self) -> None:
        """Create the topic, and write the numbers to it."""
        await self.topics.create([f"{self.prefix}{self.numbers}"])
        numbers = range(1, self.crash.numbers + 1)
        records = [Record(topic=self.numbers, value=str(number)) for number in numbers]
        await self.topics.publish(self.prefix, records)

    async def find(self, query: str, name: str) -> list[int]:
        """Return the first column of what a query finds for a name."""
        connection = await asyncpg.connect(self.dsn)
        try:
            return [row[0] for row in await connection.fetch(query, name)]
        finally:
            await connection.close()


Kill = Callable[[Setup, str], Awaitable[Sequence[int]]]
"""Runs something under a name, kills it, and runs it to its end. Returns the numbers that had an
effect, each as often as it had one."""


async def kill_reader(setup: Setup, name: str, way: Way) -> Sequence[int]:
    """Kill a way whose effects are rows."""
    await kill_once(setup, name, way)
    return await setup.find(FIND_EFFECTS, name)


async def kill_sender(
    setup: Setup, name: str, isolation_level: str = "read_committed"
) -> Sequence[int]:
    """Kill the way whose effects are records, as a reader of these sees them."""
    out = f"{setup.prefix}{to_topic(name)}"
    await setup.topics.create([out])
    await kill_once(setup, name, ways.send_in_transaction)
    async with setup.topics.open_reader(out, isolation_level) as sent:
        return await sent.read_to_end()


async def kill_once(setup: Setup, name: str, way: Way) -> None:
    """Kill a way after the effect of the number of the crash, and let it read to the end.

    Raises:
        RuntimeError: it had no such effect.
    """
    tell(f"committing: {name}")
    death = Death(moment=Moment.AFTER_EFFECT, number=setup.crash.dies_after)
    seconds_max = LIFE_SECONDS_MAX + setup.crash.batches * BATCH_SECONDS_MAX
    life = make_life(setup, name, Path(ways.__file__), way.__name__, seconds_max)
    await run_killed(life, death)
    await run_life(life)


async def kill_program(
    setup: Setup, name: str, program: Path, function: str, deaths: Sequence[Death]
) -> Sequence[int]:
    """Kill a learner's function in a life after the other, as far as it does not end before.

    Raises:
        RuntimeError: a number at whose effect it should be killed had none.
    """
    life = make_life(setup, name, program, function, PROGRAM_SECONDS_MAX)
    for death in deaths:
        await run_killed(life, death)
    await run_life(life)
    return await setup.find(FIND_EFFECTS, name)


def make_life(setup: Setup, name: str, program: Path, function: str, seconds_max: int) -> Life:
    """Make a life that ends by itself."""
    return Life(
        program=program,
        way=function,
        name=name,
        group=f"{setup.prefix}{to_topic(name)}",
        servers=setup.topics.servers,
        dsn=setup.dsn,
        topic=f"{setup.prefix}{setup.numbers}",
        every=setup.crash.every,
        seconds_max=seconds_max,
    )


def to_topic(name: str) -> str:
    """Make a name one of a topic."""
    return name.replace(",", "").replace(" ", "-")


async def run_killed(life: Life, death: Death) -> None:
    """Run a life that is killed, if it comes to that.

    Raises:
        RuntimeError: it has not had the effect after which it should have been killed.
    """
    was_killed = await run_life(life.model_copy(update={"death": death}))
    if death.moment == Moment.AFTER_EFFECT and not was_killed:
        raise RuntimeError(
            f"{life.way} has no effect of number {death.number}: it needs await reader.process"
        )


async def run_life(life: Life) -> bool:
    """Run a process, and return whether it was killed as planned.

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
        _, output = await process.communicate(life.model_dump_json().encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    errors = output.decode()
    if found := NEVER_AWAITED.search(errors):
        raise RuntimeError("line {}: {}".format(*found.groups()))
    match process.returncode:
        case 0:
            return False
        case code if code == -signal.SIGKILL:
            return True
        case code if code == -signal.SIGALRM:
            raise TimeoutError(f"{life.way} has not ended in {life.seconds_max} s")
        case child.UNWRITTEN:
            raise NotImplementedError
        case code:
            raise RuntimeError(errors or f"{life.way} ended with status {code}")


async def kill_query(setup: Setup, name: str, write: spark_sink.Write) -> Sequence[int]:
    """End a query of Spark by an error in its sink, where `make crashes` kills the process."""
    tell(f"committing: {name}")
    records = spark_engine.read_records(
        setup.lab.session,
        setup.topics.servers,
        setup.prefix,
        [setup.numbers],
        {"maxOffsetsPerTrigger": str(to_spark(setup.crash).every)},
    )
    sinks = [
        spark_sink.Sink(write=write, dsn=setup.dsn, name=name, dies_after=dies_after)
        for dies_after in (setup.crash.dies_after, None)
    ]
    await spark_sink.read_twice(records, sinks)
    return await setup.find(FIND_EFFECTS, name)


def to_spark(crash: Crash) -> Crash:
    """Make the batches so large that they are few."""
    return replace(crash, every=max(crash.every, math.ceil(crash.numbers / SPARK_BATCHES_MAX)))
