"""The positions of consumer groups, and the ends of the logs, as the brokers report them."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import for_code

from shared.messaging import reading
from shared.messaging.topics import TOPICS
from shared.runtime.brokers import Brokers

REQUEST_MILLISECONDS_MAX = 3_000
READ_SECONDS_MAX = 6.0

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
    """The ends of all partitions of the services' topics, and the groups that read them."""

    ends: Mapping[TopicPartition, int]
    groups: Mapping[str, Group]


def list_partitions() -> Sequence[TopicPartition]:
    """Of all topics that services declare."""
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
        KafkaError, OSError: the brokers do not respond within READ_SECONDS_MAX, or refuse.
    """
    options: dict[str, Any] = {
        "client_id": "observer",
        "request_timeout_ms": REQUEST_MILLISECONDS_MAX,
    }
    async with asyncio.timeout(READ_SECONDS_MAX):
        admin = AIOKafkaAdminClient(**brokers.options, **options)
        await admin.start()
        try:
            groups = {name: await read_group(admin, name) for name in names}
        finally:
            await admin.close()
        async with reading.create_client(brokers, **options) as client:
            return Logs(ends=await client.end_offsets(list_partitions()), groups=groups)


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
