"""The positions of consumer groups, and the ends of the logs, as the brokers report them."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, for_code

from shared.messaging import reading
from shared.messaging.topics import TOPICS
from shared.runtime.brokers import Brokers

REQUEST_MILLISECONDS_MAX = 2_000
"""A broker that does not respond costs this much in each of a few steps. Once its cluster has
noticed, clients do not ask it any more."""
READ_SECONDS_MAX = 12.0

K = TypeVar("K")
V = TypeVar("V")

NO_ERROR, GROUP_ID_NOT_FOUND = 0, 69

BEGIN = 0
"""Where a consumer starts: no topic of a service loses its oldest records, and nothing is committed
in a partition before the first record there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What the brokers know of a consumer group."""

    committed: Mapping[TopicPartition, int]
    members: int

    def get_position(self, partition: TopicPartition) -> int:
        """The offset of the next record that it reads there."""
        return self.committed.get(partition, BEGIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """The ends of the partitions of the services' topics, and the groups that read them.

    `failures` are the reasons why others are missing.
    """

    ends: Mapping[TopicPartition, int]
    groups: Mapping[str, Group]
    failures: Sequence[Exception] = ()


def list_partitions() -> Sequence[TopicPartition]:
    """List those of all topics that services declare."""
    return [
        TopicPartition(topic.name, number)
        for topic in TOPICS.values()
        for number in range(topic.partitions)
    ]


async def read(brokers: Brokers, names: Collection[str]) -> Logs:
    """Read the ends of the logs, and the groups of these names.

    The ends are read last: no position is beyond the end of its log. They are those of what is
    committed: a reader cannot go further while a transaction of another program is open.

    Raises:
        KafkaError, OSError: no broker responds within READ_SECONDS_MAX.
    """
    options: dict[str, Any] = {
        "client_id": "observer",
        "request_timeout_ms": REQUEST_MILLISECONDS_MAX,
    }
    failures: list[Exception] = []
    async with asyncio.timeout(READ_SECONDS_MAX):
        admin = AIOKafkaAdminClient(**brokers.options, **options)
        try:
            await admin.start()
            groups = await ask_each(names, partial(read_group, admin), failures)
        finally:
            await admin.close()
        async with reading.create_client(brokers, **options) as client:
            ends = await ask_each(list_partitions(), partial(read_end, client), failures)
    return Logs(ends=ends, groups=groups, failures=failures)


async def ask_each(
    keys: Collection[K], ask: Callable[[K], Awaitable[V]], failures: list[Exception]
) -> Mapping[K, V]:
    """Ask for all at once. What cannot be answered is left out, and its error is added to
    `failures`: a partition without a leader hides no other one."""
    answers = await asyncio.gather(*map(ask, keys), return_exceptions=True)
    answered = {}
    for key, answer in zip(keys, answers, strict=True):
        if isinstance(answer, (KafkaError, OSError)):
            failures.append(answer)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            answered[key] = answer
    return answered


async def read_end(client: AIOKafkaConsumer, partition: TopicPartition) -> int:
    """Read the offset behind the last committed record. Raises KafkaError."""
    ends: Mapping[TopicPartition, int] = await client.end_offsets([partition])
    return ends[partition]


async def read_group(admin: AIOKafkaAdminClient, name: str) -> Group:
    """Read one group. Raises KafkaError.

    The description comes first: a coordinator that cannot answer says so there, while aiokafka
    takes such an answer about offsets for a group without any.
    """
    coordinator = await admin.find_coordinator(name)
    [response] = await admin.describe_consumer_groups([name], coordinator)
    [(error_code, _, _, _, _, members, *_)] = response.groups
    if error_code not in (NO_ERROR, GROUP_ID_NOT_FOUND):
        raise for_code(error_code)(f"the group {name} cannot be described")
    offsets = await admin.list_consumer_group_offsets(name, coordinator)
    return Group(
        committed={partition: each.offset for partition, each in offsets.items()},
        members=len(members),
    )
