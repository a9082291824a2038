"""Which member of a group has which partition (TV-14), by which assignor (TV-13), and where a group
begins; with plain consumers."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from lessons.broker import Topics
from lessons.experiment import Finding
from lessons.lesson import Record, to_instant

PREFIX = "lesson.nodes.groups."
SHARED = f"{PREFIX}shared"
PARTITIONS = 4
BEGUN = f"{PREFIX}begun"
RECORDS = 10
COMMITTED = 6
TIME = to_instant("00:03:00")
"""The time of the fourth of ten records, which are a minute apart."""

HEARTBEAT_MILLISECONDS = 100
POLL_SECONDS = 0.05
READ_MILLISECONDS = 200
ASSIGNED_SECONDS_MAX = 60.0


async def find_assignments(topics: Topics) -> list[Finding]:
    """Members come one after the other; each time, how many partitions has each of them?"""
    await topics.create({SHARED: PARTITIONS})
    findings = []
    async with AsyncExitStack() as stack:
        members: list[AIOKafkaConsumer] = []
        for expected in ([4], [2, 2], [1, 1, 1, 1], [1, 1, 1, 1, 0]):
            joining = [
                stack.enter_async_context(join(topics.servers, "first"))
                for _ in range(len(expected) - len(members))
            ]
            members += await asyncio.gather(*joining)
            name = f"4 partitions, members: {len(members)}"
            findings.append(judge(name, await wait_until_shared(members, expected), expected))
        second = await stack.enter_async_context(join(topics.servers, "second"))
        owned = await wait_until_shared([second], [4])
        findings.append(judge("4 partitions, a second group", owned, [4]))
    return findings


def judge(name: str, owned: Sequence[int], expected: Sequence[int]) -> Finding:
    return Finding(
        row={"what": name, "after": to_text(owned)},
        claim="each partition has one member of each group",
        holds=list(owned) == list(expected),
    )


def to_text(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


@asynccontextmanager
async def join(servers: str, group: str) -> AsyncIterator[AIOKafkaConsumer]:
    async with AIOKafkaConsumer(
        SHARED,
        bootstrap_servers=servers,
        group_id=f"{PREFIX}{group}",
        heartbeat_interval_ms=HEARTBEAT_MILLISECONDS,
        enable_auto_commit=False,
    ) as consumer:
        yield consumer


async def wait_until_shared(
    members: Sequence[AIOKafkaConsumer], expected: Sequence[int]
) -> list[int]:
    """How many partitions each one has; within ASSIGNED_SECONDS_MAX they are as expected."""
    owned: list[int] = []
    for _ in range(round(ASSIGNED_SECONDS_MAX / POLL_SECONDS)):
        owned = sorted((len(member.assignment()) for member in members), reverse=True)
        if owned == list(expected):
            break
        await asyncio.sleep(POLL_SECONDS)
    return owned


class TwoTopics(ClusterMetadata):  # type: ignore[misc]
    """What assignors ask a cluster for: two topics of three partitions."""

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0, 1, 2}


def assign(assignor: type[AbstractPartitionAssignor]) -> Mapping[str, Mapping[str, list[int]]]:
    """The partitions of two topics for each of two members."""
    members = {name: assignor.metadata(["T1", "T2"]) for name in ("C1", "C2")}
    found = assignor.assign(TwoTopics(), members)
    return {
        name: {topic: list(numbers) for topic, numbers in each.assignment}
        for name, each in found.items()
    }


def find_assignors() -> list[Finding]:
    """With range the first member has more of each topic; round robin deals over all of them."""
    expected: Mapping[Any, Any] = {
        RangePartitionAssignor: {"C1": {"T1": [0, 1], "T2": [0, 1]}, "C2": {"T1": [2], "T2": [2]}},
        RoundRobinPartitionAssignor: {
            "C1": {"T1": [0, 2], "T2": [1]},
            "C2": {"T1": [1], "T2": [0, 2]},
        },
    }
    findings = []
    for assignor, shares in expected.items():
        found = assign(assignor)
        text = ", ".join(
            f"{name} {topic}: {to_text(numbers)}"
            for name, share in found.items()
            for topic, numbers in share.items()
        )
        sizes = [sum(map(len, share.values())) for share in shares.values()]
        findings.append(
            Finding(
                row={"what": f"assignor {assignor.name}", "after": text},
                claim=f"{sizes[0]} and {sizes[1]} partitions",
                holds=found == shares,
            )
        )
    return findings


async def find_begins(topics: Topics) -> list[Finding]:
    """How many of ten records a group reads that begins in one of four ways."""
    await publish_ten(topics)
    return [
        judge_begin("committed", await read_from(topics, "committed"), RECORDS - COMMITTED),
        judge_begin("earliest", await read_from(topics, "earliest"), RECORDS),
        judge_begin("latest", await read_from(topics, "latest"), 0),
        judge_begin("00:03", await read_from(topics, "time", TIME), RECORDS - 3),
    ]


async def claim_all_from_latest(topics: Topics) -> list[Finding]:
    await publish_ten(topics)
    return [judge_begin("latest", await read_from(topics, "latest"), RECORDS)]


async def publish_ten(topics: Topics) -> None:
    """Ten records, a minute apart; one group has committed the first six."""
    await topics.create({BEGUN: 1})
    await topics.publish(
        "",
        [
            Record(topic=BEGUN, value=str(minute), time=f"00:{minute:02}:00")
            for minute in range(RECORDS)
        ],
    )
    place = TopicPartition(BEGUN, 0)
    async with AIOKafkaConsumer(
        bootstrap_servers=topics.servers, group_id=f"{PREFIX}committed", enable_auto_commit=False
    ) as consumer:
        consumer.assign([place])
        await consumer.commit({place: COMMITTED})


async def read_from(topics: Topics, begin: str, since: datetime | None = None) -> int:
    """The number of records that a group reads; without a committed offset, by its reset."""
    place = TopicPartition(BEGUN, 0)
    async with AIOKafkaConsumer(
        bootstrap_servers=topics.servers,
        group_id=f"{PREFIX}{begin}",
        auto_offset_reset="latest" if begin == "latest" else "earliest",
        enable_auto_commit=False,
    ) as consumer:
        consumer.assign([place])
        if since is not None:
            found = await consumer.offsets_for_times({place: round(since.timestamp() * 1000)})
            consumer.seek(place, found[place].offset)
        end = (await consumer.end_offsets([place]))[place]
        read = 0
        while await consumer.position(place) < end:
            for batch in (await consumer.getmany(timeout_ms=READ_MILLISECONDS)).values():
                read += len(batch)
        return read


def judge_begin(begin: str, read: int, expected: int) -> Finding:
    return Finding(
        row={"what": f"a group begins at {begin}", "sent": RECORDS, "counted": read},
        claim=f"it reads {expected}",
        holds=read == expected,
    )
