"""The positions of consumer groups, and the ends of the logs, as the brokers report them."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, for_code

from shared.messaging import reading
from shared.messaging.topics import TOPICS, list_partitions
from shared.runtime.brokers import Brokers

REQUEST_MILLISECONDS_MAX = 2_000
ASK_SECONDS_MAX = 4.0
"""For all groups at once, and for all ends at once."""
READ_SECONDS_MAX = 15.0
"""With the begin of each of the two clients; twice of which is spent on a broker that is frozen."""

K = TypeVar("K", str, TopicPartition)
V = TypeVar("V")

NO_ERROR, GROUP_ID_NOT_FOUND = 0, 69


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What the brokers know of a consumer group."""

    committed: Mapping[TopicPartition, int]
    """By partition, the offset of the next record that it reads there."""
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """The ends of the partitions of the services' topics, and the groups that read them.

    `failures` are the reasons why others are missing, by group or partition.
    """

    ends: Mapping[TopicPartition, int]
    groups: Mapping[str, Group]
    failures: Mapping[str | TopicPartition, Exception] = field(default_factory=dict)


async def read(brokers: Brokers, names: Collection[str]) -> Logs:
    """Read the ends of the logs, and the groups of these names.

    The ends are read last: no position is beyond the end of its log. They are those of what is
    committed: a reader cannot go further while a transaction of another program is open.

    Raises:
        KafkaError, OSError: no broker responds.
    """
    options: dict[str, Any] = {
        "client_id": "observer",
        "request_timeout_ms": REQUEST_MILLISECONDS_MAX,
    }
    async with asyncio.timeout(READ_SECONDS_MAX):
        admin = AIOKafkaAdminClient(**brokers.options, **options)
        try:
            await admin.start()
            groups, without_group = await ask_each(names, partial(read_group, admin))
        finally:
            await admin.close()
        async with reading.create_client(brokers, **options) as client:
            ends, without_end = await ask_each(list_partitions(TOPICS), partial(read_end, client))
    return Logs(ends=ends, groups=groups, failures={**without_group, **without_end})


async def ask_each(
    keys: Collection[K], ask: Callable[[K], Awaitable[V]]
) -> tuple[Mapping[K, V], Mapping[K, Exception]]:
    """Ask for all at once; returns the answers, and the errors of what was not answered in
    ASK_SECONDS_MAX: a partition without a leader hides no other one."""

    async def ask_one(key: K) -> V:
        async with asyncio.timeout(ASK_SECONDS_MAX):
            return await ask(key)

    results = await asyncio.gather(*map(ask_one, keys), return_exceptions=True)
    answers: dict[K, V] = {}
    failures: dict[K, Exception] = {}
    for key, result in zip(keys, results, strict=True):
        if isinstance(result, (KafkaError, OSError)):
            failures[key] = result
        elif isinstance(result, BaseException):
            raise result
        else:
            answers[key] = result
    return answers, failures


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
