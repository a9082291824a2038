"""The end offsets of the topics, from a real Kafka."""

import asyncio

from analytics_spark.serving.topic_ends import FRESH_SECONDS, TopicEnds
from shared.runtime.brokers import Brokers

READS_MAX = 10


async def test_the_ends_of_topics_are_read_from_kafka(kafka_servers: str) -> None:
    ends = TopicEnds(Brokers(kafka_servers))
    try:
        current = await ends.current()
        for _ in range(READS_MAX):  # a new broker on a busy machine takes its time
            if current is None:
                await asyncio.sleep(FRESH_SECONDS)
                current = await ends.current()
    finally:
        await ends.close()

    assert current is not None
    assert current.keys() == {"users.v1", "items.v1", "orders.v1"}
    assert current["orders.v1"].keys() == {"0", "1", "2", "3"}


async def test_without_kafka_the_lag_is_unknown() -> None:
    assert await TopicEnds(Brokers("127.0.0.1:1")).current() is None
