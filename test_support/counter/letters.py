"""The dead letters of a worker of counters."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import TopicPartition

from shared.messaging.topics import TOPICS
from test_support.counter.counter import TOPIC
from test_support.counter.desk import NAME
from test_support.topic_records import read_to_end


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]

    @property
    def origin(self) -> tuple[int, int]:
        """Partition and offset of its record."""
        return int(self.headers["dlq_partition"]), int(self.headers["dlq_offset"])


async def read_letters(servers: str) -> Sequence[Letter]:
    """All that there are on a broker, also those of other tests."""
    name = TOPICS[TOPIC].dead_letters_of(NAME)
    places = [TopicPartition(name, number) for number in range(TOPICS[TOPIC].partitions)]
    return [
        Letter(key=each.key, value=each.value, headers=dict(each.headers))
        for each in await read_to_end(servers, places)
    ]
