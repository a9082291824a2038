"""Two clusters and mirrors; the first one is gone, and a reader goes on with the second (TV-20).
The lag of a mirror as three observers see it (TV-21)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from lessons.broker import PREFIX, Topics, open_topics, quietly
from lessons.clusters.mirror import Note, count_behind, map_offset, open_mirror
from lessons.experiment import Finding, Lab
from lessons.lesson import Record, to_instant
from local_stack.testing import throwaway_kafka

FACTS = TopicPartition(f"{PREFIX}clusters.facts", 0)
BOTH_WAYS = TopicPartition(f"{PREFIX}clusters.both-ways", 0)
LAGGING = TopicPartition(f"{PREFIX}clusters.lagging", 0)

BEGIN = to_instant("04:00:00")
RECORDS = 300
"""One each second: the first cluster is gone at 04:05."""
READ = 290
COPIED = 295
RESTART = to_instant("04:03:00")
"""Two minutes before: at most so much is read twice."""
OLDER = 40
"""Records that only the second cluster has, so that offsets differ."""

EACH = 10
"""Records written in each of two clusters that are copied in both directions."""
QUIET_POLLS = 5
"""So often in a row no mirror copies anything."""
POLLS_MAX = 40

READ_MILLISECONDS = 200

NOTES: Sequence[Note] = ((495, 500), (596, 600))
"""Offsets of one record in a first and in a second cluster."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known when the first cluster is gone: what a reader has read, and the notes of the
    mirror."""

    read: Sequence[str]
    notes: Sequence[Note]


Begin = Callable[[AIOKafkaConsumer], object]
"""Where a reader begins in the second cluster."""


def run(lab: Lab) -> Sequence[Finding]:
    with quietly(throwaway_kafka()) as first:
        findings, known = asyncio.run(use_both(first, lab.servers))
    return [
        *findings,
        *asyncio.run(go_on_with_the_second(lab.servers, known)),
        *find_offsets(),
    ]


def run_controls(lab: Lab) -> Sequence[Finding]:
    """Mirrors that do not mark what they copy, and a reader that begins at the end."""
    with quietly(throwaway_kafka()) as first:
        loop, known = asyncio.run(use_both_without(first, lab.servers))
    return [loop, *asyncio.run(go_on_at_the_end(lab.servers, known))]


async def use_both(first: str, second: str) -> tuple[list[Finding], Known]:
    async with open_both(first, second) as (one, two):
        looks = [await copy_both_ways(one, two, marks=True), *await observe_lag(one, two)]
        return looks, await copy_until_the_end(one, two)


async def use_both_without(first: str, second: str) -> tuple[Finding, Known]:
    async with open_both(first, second) as (one, two):
        loop = await copy_both_ways(one, two, marks=False)
        return loop, await copy_until_the_end(one, two)


@asynccontextmanager
async def open_both(first: str, second: str) -> AsyncIterator[tuple[Topics, Topics]]:
    async with open_topics(first) as one, open_topics(second) as two:
        await two.remove(f"{PREFIX}clusters.")
        for topics in (one, two):
            await topics.create({place.topic: 1 for place in (FACTS, BOTH_WAYS, LAGGING)})
        yield one, two


async def copy_both_ways(one: Topics, two: Topics, *, marks: bool) -> Finding:
    """Each cluster has records of its own, and a mirror in each direction."""
    for name, topics in (("first", one), ("second", two)):
        values = [f"{name} {number}" for number in range(EACH)]
        await topics.publish("", [Record(topic=BOTH_WAYS.topic, value=each) for each in values])
    async with AsyncExitStack() as stack:
        mirrors = [
            await stack.enter_async_context(
                open_mirror(name, source.servers, target.servers, BOTH_WAYS, marks=marks)
            )
            for name, source, target in (("first", one, two), ("second", two, one))
        ]
        quiet = polls = 0
        while quiet < QUIET_POLLS and polls < POLLS_MAX:
            copied = [await mirror.copy() for mirror in mirrors]
            quiet = 0 if any(copied) else quiet + 1
            polls += 1
    sizes = [(await topics.get_ends([BOTH_WAYS]))[BOTH_WAYS] for topics in (one, two)]
    return Finding(
        row={"what": "mirrors in both directions", "first": sizes[0], "second": sizes[1]},
        claim=f"each has {2 * EACH}",
        holds=sizes == [2 * EACH, 2 * EACH],
    )


async def observe_lag(one: Topics, two: Topics) -> list[Finding]:
    """Seven records; the mirror has read six, sent five, and committed three."""
    await one.publish("", [Record(topic=LAGGING.topic, value=str(n)) for n in range(7)])
    async with open_mirror("first", one.servers, two.servers, LAGGING) as mirror:
        consumer = mirror.consumer
        read: list[ConsumerRecord] = []
        while len(read) < 6:
            batches = await consumer.getmany(
                timeout_ms=READ_MILLISECONDS, max_records=6 - len(read)
            )
            read += batches.get(LAGGING, [])
        for record in read[:5]:
            await mirror.send(record)
        await consumer.commit({LAGGING: 3})

        end = (await one.get_ends([LAGGING]))[LAGGING]
        copied = (await two.get_ends([LAGGING]))[LAGGING]
        committed = await one.admin.list_consumer_group_offsets(f"{LAGGING.topic}.mirror")
        in_client = consumer.highwater(LAGGING) - await consumer.position(LAGGING)
    return [
        judge_number("lag: what the second does not have", end - copied, 2),
        judge_number("lag: a tool, by the committed offset", end - committed[LAGGING].offset, 4),
        judge_number("lag: a client, by its position", in_client, 1),
    ]


def judge_number(what: str, found: int, expected: int) -> Finding:
    return Finding(
        row={"what": what, "records": found}, claim=str(expected), holds=found == expected
    )


async def copy_until_the_end(one: Topics, two: Topics) -> Known:
    """Facts of five minutes: a reader has not read the last ten, and the mirror lacks five."""
    older = [Record(topic=FACTS.topic, value="older", time=BEGIN.isoformat()) for _ in range(OLDER)]
    await two.publish("", older)
    facts = [
        Record(topic=FACTS.topic, value=str(n), time=(BEGIN + timedelta(seconds=n)).isoformat())
        for n in range(RECORDS)
    ]
    await one.publish("", facts)
    async with open_mirror("first", one.servers, two.servers, FACTS) as mirror:
        while mirror.copied < COPIED:
            await mirror.copy(limit=COPIED - mirror.copied)
    read = await read_facts(one.servers, lambda consumer: consumer.seek(FACTS, 0))
    return Known(read=read[:READ], notes=mirror.notes)


async def go_on_with_the_second(servers: str, known: Known) -> list[Finding]:
    async def seek_to_time(consumer: AIOKafkaConsumer) -> None:
        await seek_to(consumer, RESTART)

    next_one = map_offset(known.notes, READ)
    by_time = await read_facts(servers, seek_to_time)
    by_offset = await read_facts(servers, lambda consumer: consumer.seek(FACTS, next_one))
    await remove(servers)
    return [
        judge_failover("a reader goes on at 04:03", known, by_time, twice=110),
        judge_failover(f"a reader goes on at {READ} as {next_one}", known, by_offset, twice=0),
    ]


async def go_on_at_the_end(servers: str, known: Known) -> list[Finding]:
    async def seek_to_end(consumer: AIOKafkaConsumer) -> None:
        await consumer.seek_to_end(FACTS)

    read = await read_facts(servers, seek_to_end)
    await remove(servers)
    return [judge_failover("a reader goes on at latest", known, read, twice=0)]


async def seek_to(consumer: AIOKafkaConsumer, instant: datetime) -> None:
    """To the first record of this time or later; offsets of another cluster say nothing here."""
    found = await consumer.offsets_for_times({FACTS: round(instant.timestamp() * 1000)})
    consumer.seek(FACTS, found[FACTS].offset)


async def read_facts(servers: str, begin: Begin) -> list[str]:
    """The values from there on."""
    async with AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
        consumer.assign([FACTS])
        moved = begin(consumer)
        if asyncio.iscoroutine(moved):
            await moved
        end = (await consumer.end_offsets([FACTS]))[FACTS]
        values: list[str] = []
        while await consumer.position(FACTS) < end:
            for batch in (await consumer.getmany(timeout_ms=READ_MILLISECONDS)).values():
                values += [record.value.decode() for record in batch]
        return values


async def remove(servers: str) -> None:
    async with open_topics(servers) as topics:
        await topics.remove(f"{PREFIX}clusters.")


def judge_failover(what: str, known: Known, read: Sequence[str], *, twice: int) -> Finding:
    """Nothing is lost but what had not been copied."""
    times = Counter([*known.read, *read])
    lost = [number for number in range(RECORDS) if str(number) not in times]
    found = sum(count > 1 for count in times.values())
    return Finding(
        row={"what": what, "lost": len(lost), "twice": found},
        claim=f"only the {RECORDS - COPIED} that were not copied are lost",
        holds=lost == list(range(COPIED, RECORDS)) and found == twice,
    )


def find_offsets() -> list[Finding]:
    mapped = [
        judge_number(f"offset {first}, by notes", map_offset(NOTES, first), second)
        for first, second in ((550, 555), (596, 600), (600, 604))
    ]
    behind = count_behind(per_second=1_000_000, milliseconds=5)
    return [*mapped, judge_number("1,000,000 a second, 5 ms later", behind, 5_000)]
