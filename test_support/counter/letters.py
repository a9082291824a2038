"""The dead letters of a worker of counters."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import TopicPartition

from shared.messaging import reading
from shared.messaging.topics import TOPICS
from shared.runtime.brokers import Brokers
from test_support.counter.counter import TOPIC
from test_support.counter.desk import NAME


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
    async with reading.create_client(Brokers(servers), auto_offset_reset="earliest") as client:
        client.assign(places)
        ends = await client.end_offsets(places)
        found = []
        while any([await client.position(place) < ends[place] for place in places]):
            for batch in (await client.getmany(timeout_ms=200)).values():
                found += [
                    Letter(key=each.key, value=each.value, headers=dict(each.headers))
                    for each in batch
                ]
    return found
