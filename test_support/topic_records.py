"""What topics hold now."""

import asyncio
from collections.abc import Collection

from aiokafka import ConsumerRecord, TopicPartition

from shared.messaging import reading
from shared.runtime.brokers import Brokers
from test_support.waits import HANGS_AFTER_SECONDS

POLL_MILLISECONDS = 200


async def read_to_end(servers: str, places: Collection[TopicPartition]) -> list[ConsumerRecord]:
    """All committed records of these partitions, those of one in their order. Raises TimeoutError:
    they have not been read after HANGS_AFTER_SECONDS."""
    found: list[ConsumerRecord] = []
    async with (
        asyncio.timeout(HANGS_AFTER_SECONDS),
        reading.create_client(Brokers(servers), auto_offset_reset="earliest") as client,
    ):
        client.assign([*places])
        ends = await client.end_offsets([*places])
        while any([await client.position(place) < end for place, end in ends.items()]):
            for batch in (await client.getmany(timeout_ms=POLL_MILLISECONDS)).values():
                found += batch
    return found
