"""The positions of consumer groups, and the ends of the logs, as the brokers report them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from shared.messaging.topics import TOPICS
from shared.runtime.brokers import Brokers

REQUEST_MILLISECONDS_MAX = 5_000

STABLE = "Stable"
"""The state of a group that has members, all with their partitions."""


BEGIN = 0
"""Where a consumer starts: no topic of a service loses its oldest records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What the brokers know of a consumer group; `is_alive`: it has members."""

    committed: Mapping[TopicPartition, int]
    is_alive: bool

    def get_positions(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Its position in each of these partitions; none if there has never been such a group.

        It commits nothing in a partition before the first record there.
        """
        if not self.committed and not self.is_alive:
            return {}
        return {each: self.committed.get(each, BEGIN) for each in partitions}


def list_partitions(reader: str | None = None) -> Sequence[TopicPartition]:
    """Of all topics that services declare; with a `reader`, of those that it reads."""
    return [
        TopicPartition(topic.name, number)
        for topic in TOPICS.values()
        for number in range(topic.partitions)
        if reader is None or reader in topic.readers
    ]


async def read_ends(brokers: Brokers) -> Mapping[TopicPartition, int]:
    """The end of each log. Raises KafkaError."""
    async with AIOKafkaConsumer(
        **brokers.options, client_id="observer", request_timeout_ms=REQUEST_MILLISECONDS_MAX
    ) as client:
        ends: Mapping[TopicPartition, int] = await client.end_offsets(list_partitions())
        return ends


async def read_groups(brokers: Brokers, names: Collection[str]) -> Mapping[str, Group]:
    """The groups of these names. Raises KafkaError."""
    client = AIOKafkaAdminClient(
        **brokers.options, client_id="observer", request_timeout_ms=REQUEST_MILLISECONDS_MAX
    )
    await client.start()
    try:
        return {name: await read_group(client, name) for name in names}
    finally:
        await client.close()


async def read_group(client: AIOKafkaAdminClient, name: str) -> Group:
    offsets = await client.list_consumer_group_offsets(name)
    [response] = await client.describe_consumer_groups([name])
    [(_, _, state, *_)] = response.groups
    return Group(
        committed={partition: each.offset for partition, each in offsets.items()},
        is_alive=state == STABLE,
    )
