"""What is joined by key has to lie in partitions of one number: checked before anything is read."""

from collections.abc import Mapping, Sequence

from aiokafka.admin import AIOKafkaAdminClient

from analytics_faust.messages import ITEMS, ORDERS, USERS
from shared.messaging.topics import INTERNAL_TOPICS
from shared.runtime.brokers import Brokers

LINES_BY_ITEM = INTERNAL_TOPICS["analytics-faust.lines-by-item"].name
PURCHASES_BY_HOUR = INTERNAL_TOPICS["analytics-faust.purchases-by-hour"].name


def changelog(table: str) -> str:
    """As Faust names it."""
    return INTERNAL_TOPICS[f"analytics-faust-{table}-changelog"].name


JOINED: Sequence[Sequence[str]] = (
    (ORDERS, USERS, changelog("users")),
    (LINES_BY_ITEM, ITEMS, changelog("items")),
    (PURCHASES_BY_HOUR, changelog("buyers")),
)
"""Topics of which the same key must lie in the same partition."""


class NotCopartitioned(Exception):
    """A join would look for a key in a partition where it is not."""


def demand_copartitions(partitions: Mapping[str, int]) -> None:
    """Raises NotCopartitioned. `partitions` are the numbers of the topics that are there."""
    for topics in JOINED:
        missing = [topic for topic in topics if topic not in partitions]
        if missing:
            raise NotCopartitioned(
                f"there is no topic {missing[0]}: create it with python -m shared.messaging.topics"
            )
        if len({partitions[topic] for topic in topics}) > 1:
            counted = ", ".join(f"{topic} has {partitions[topic]}" for topic in topics)
            raise NotCopartitioned(
                f"topics that are joined need equally many partitions, but {counted}: a key would"
                " be looked for in the wrong one. Create the topics anew with one number"
            )


async def check_copartitions(brokers: Brokers) -> None:
    """Ask the broker. Raises NotCopartitioned, or KafkaError when it is away."""
    client = AIOKafkaAdminClient(**brokers.options)
    await client.start()
    try:
        wanted = [topic for topics in JOINED for topic in topics]
        described = await client.describe_topics(wanted)
    finally:
        await client.close()
    demand_copartitions(
        {each["topic"]: len(each["partitions"]) for each in described if not each["error_code"]}
    )
