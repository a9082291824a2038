"""Each way reads the same numbers, is killed once, and starts again: what is lost, or twice?"""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal
from uuid import NAMESPACE_OID, uuid5

import asyncpg
import psycopg
from aiokafka import AIOKafkaConsumer, TopicPartition

from lessons.broker import PREFIX, open_topics
from lessons.committing import spark_sink, ways
from lessons.experiment import Finding, Lab
from lessons.lesson import Record
from shared.runtime import postgres
from test_support.counter.counted_records import CREATE_EFFECTS

NUMBERS = 1_000
MANY_NUMBERS = 10_000
DIES_AFTER = 750
"""In the middle of a batch of 100."""
AT_A_TIME = 2
"""Ways: each is a process."""
LIFE_SECONDS_MAX = 120

TOPIC = f"{PREFIX}committing.numbers"
MANY = f"{PREFIX}committing.many"

EFFECTS = "SELECT number FROM effects_of_ways WHERE way = %s"
EFFECTS_BY_PLACE = "SELECT number FROM effects_by_place WHERE way = %s"
EFFECTS_OF_THE_SHOP = "SELECT version FROM effects WHERE stream_id = %s"

Level = Literal["at most once", "at least once", "exactly once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A way, and what is claimed of it."""

    way: str
    claim: Level
    every: int = ways.BATCH_RECORDS
    numbers: int = NUMBERS
    dies_after: int = DIES_AFTER
    lost: int | None = None
    twice: int | None = None
    """What must be found exactly, where it follows from the place of the crash."""

    @property
    def name(self) -> str:
        """Of its group and of its rows."""
        usual = self.every == ways.BATCH_RECORDS
        return self.way if usual else f"{self.way}, every {self.every:,}"

    @property
    def topic(self) -> str:
        return TOPIC if self.numbers == NUMBERS else MANY


TRIALS = (
    Trial(way="commit automatically while slow", claim="at most once", twice=0),
    Trial(way="commit automatically and late", claim="at least once", lost=0, twice=750),
    Trial(way="commit before", claim="at most once", lost=50, twice=0),
    Trial(way="commit after", claim="at least once", lost=0, twice=50),
    Trial(way="commit out of order", claim="at least once", lost=0, twice=150),
    Trial(way="commit up to a failure", claim="at least once", lost=0),
    Trial(way="write by place", claim="exactly once"),
    Trial(way="store offset with effect", claim="exactly once"),
    Trial(way="send in transaction", claim="exactly once"),
    Trial(way="consume as the shop", claim="exactly once"),
)
EVERY_1000 = Trial(
    way="commit after",
    claim="at least once",
    every=1_000,
    numbers=MANY_NUMBERS,
    dies_after=9_500,
    lost=0,
    twice=500,
)
CONTROLS = (
    Trial(way="commit automatically while slow", claim="at least once"),
    Trial(way="commit before", claim="at least once"),
    Trial(way="commit after", claim="exactly once"),
    Trial(way="commit past a failure", claim="at least once"),
    Trial(way="store offset of the last", claim="exactly once"),
)


def run(lab: Lab, every: int | None = None) -> Sequence[Finding]:
    """All ways; with `every`, how a number of records for each commit changes what is repeated."""
    if every is not None:
        return run_trials(lab, [Trial(way="commit after", claim="at least once", every=every)])
    return [
        *run_trials(lab, [*TRIALS, EVERY_1000]),
        try_spark(lab, "Spark with an epoch", spark_sink.write_with_epoch, "exactly once"),
        try_spark(lab, "Spark without an epoch", spark_sink.write_rows, "at least once"),
    ]


def run_controls(lab: Lab) -> Sequence[Finding]:
    """Claims that are too good: the mechanism that they need is left out."""
    return [
        *run_trials(lab, CONTROLS),
        try_spark(lab, "Spark without an epoch", spark_sink.write_rows, "exactly once"),
    ]


def run_trials(lab: Lab, trials: Sequence[Trial]) -> list[Finding]:
    asyncio.run(prepare(lab.servers, lab.database, trials))
    with ThreadPoolExecutor(AT_A_TIME) as workers:
        found = list(workers.map(partial(try_way, lab), trials))
    asyncio.run(clean(lab))
    return found


async def prepare(servers: str, database: str, trials: Sequence[Trial]) -> None:
    """Empty tables, and the numbers in their topics."""
    await postgres.migrate(database, "shared")
    connection = await asyncpg.connect(database)
    try:
        await connection.execute("DROP TABLE IF EXISTS effects")
        await connection.execute(CREATE_EFFECTS)
        await connection.execute(ways.TABLES)
        await connection.execute(ways.EMPTY_TABLES)
    finally:
        await connection.close()
    async with open_topics(servers) as topics:
        await topics.remove(f"{PREFIX}committing.")
        for trial in {trial.topic: trial for trial in trials}.values():
            await topics.create({trial.topic: 1})
            await topics.publish("", to_records(trial.topic, trial.numbers))
        await topics.create({out_topic(trial): 1 for trial in trials})


async def clean(lab: Lab) -> None:
    async with open_topics(lab.servers) as topics:
        await topics.remove(f"{PREFIX}committing.")


def to_records(topic: str, numbers: int) -> list[Record]:
    return [Record(topic=topic, value=str(number)) for number in range(1, numbers + 1)]


def out_topic(trial: Trial) -> str:
    return f"{PREFIX}committing.out.{trial.name.replace(' ', '-').replace(',', '')}"


def try_way(lab: Lab, trial: Trial) -> Finding:
    """Two lives: the first ends in the middle of a batch."""
    first = live(lab, trial, trial.dies_after)
    assert first == -signal.SIGKILL, f"{trial.name} ended by itself: {first}"
    second = live(lab, trial, None)
    assert second == 0, f"{trial.name} failed: {second}"
    return judge(trial, find_effects(lab, trial))


def live(lab: Lab, trial: Trial, dies_after: int | None) -> int:
    words = [trial.way, trial.name, lab.servers, trial.topic, out_topic(trial), str(trial.every)]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "lessons.committing.child", *words),
            *([str(dies_after)] if dies_after else []),
        ],
        env=os.environ | {"LESSON_DSN": lab.database},
        timeout=LIFE_SECONDS_MAX,
        check=False,
    )
    return ended.returncode


def find_effects(lab: Lab, trial: Trial) -> list[int]:
    """The numbers that had an effect, each as often as it had one."""
    if trial.way == "send in transaction":
        return asyncio.run(read_committed(lab.servers, out_topic(trial)))
    if trial.way == "consume as the shop":
        return read_numbers(lab, EFFECTS_OF_THE_SHOP, str(uuid5(NAMESPACE_OID, trial.name)))
    query = EFFECTS_BY_PLACE if trial.way == "write by place" else EFFECTS
    return read_numbers(lab, query, trial.name)


def read_numbers(lab: Lab, query: str, value: str) -> list[int]:
    with psycopg.connect(lab.database) as connection:
        return [number for (number,) in connection.execute(query.encode(), [value])]


async def read_committed(servers: str, topic: str) -> list[int]:
    """What a reader sees that waits for the end of transactions."""
    place = TopicPartition(topic, 0)
    async with AIOKafkaConsumer(
        bootstrap_servers=servers, isolation_level="read_committed"
    ) as consumer:
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        end = (await consumer.end_offsets([place]))[place]
        numbers: list[int] = []
        while await consumer.position(place) < end:
            for batch in (await consumer.getmany(timeout_ms=100)).values():
                numbers += [int(record.value) for record in batch]
        return numbers


def judge(trial: Trial, effects: Iterable[int]) -> Finding:
    counted = Counter(effects)
    lost = sum(number not in counted for number in range(1, trial.numbers + 1))
    twice = sum(count > 1 for count in counted.values())
    holds = {
        "at most once": twice == 0,
        "at least once": lost == 0,
        "exactly once": lost == 0 and twice == 0,
    }[trial.claim]
    holds &= trial.lost in (None, lost) and trial.twice in (None, twice)
    row = {
        "way": trial.name,
        "lost": lost,
        "twice": twice,
        "exactly once": trial.numbers - lost - twice,
    }
    return Finding(row=row, claim=trial.claim, holds=holds)


def try_spark(
    lab: Lab,
    name: str,
    make_sink: Callable[[str, str, int | None], spark_sink.Sink],
    claim: Level,
) -> Finding:
    """The query dies between the commit of its sink and its own checkpoint."""

    asyncio.run(publish_numbers(lab))
    with psycopg.connect(lab.database, autocommit=True) as connection:
        connection.execute(spark_sink.TABLES)
        connection.execute("DELETE FROM effects_of_ways WHERE way = %s", [name])
        connection.execute("DELETE FROM epochs_of_ways WHERE way = %s", [name])
    spark_sink.read_all(lab.session, lab.servers, TOPIC, partial(make_sink, lab.database, name))
    found = judge(Trial(way=name, claim=claim), read_numbers(lab, EFFECTS, name))
    asyncio.run(clean(lab))
    return found


async def publish_numbers(lab: Lab) -> None:
    async with open_topics(lab.servers) as topics:
        await topics.remove(TOPIC)
        await topics.create({TOPIC: 1})
        await topics.publish("", to_records(TOPIC, NUMBERS))
