"""Topics that are joined by key need equally many partitions: checked before anything is read."""

from collections.abc import Mapping, Sequence

from aiokafka.admin import AIOKafkaAdminClient

from analytics_faust.messages import ITEMS, ORDERS, USERS
from shared.messaging.topics import INTERNAL_TOPICS
from shared.runtime.brokers import Brokers

LINES_BY_ITEM = INTERNAL_TOPICS["analytics-faust.lines-by-item"].name
PURCHASES_BY_HOUR = INTERNAL_TOPICS["analytics-faust.purchases-by-hour"].name


def get_changelog(table: str) -> str:
    """The topic of a table's changelog, as Faust names it."""
    return INTERNAL_TOPICS[f"analytics-faust-{table}-changelog"].name


JOINED: Sequence[Sequence[str]] = (
    (ORDERS, USERS, get_changelog("users")),
    (LINES_BY_ITEM, ITEMS, get_changelog("items")),
    (PURCHASES_BY_HOUR, get_changelog("buyers")),
)
"""Groups of topics in which a key must be in the partition of the same number."""


class NotCopartitioned(Exception):
    """A join would look for a key in a partition where it is not."""


def require_copartitions(partitions: Mapping[str, int]) -> None:
    """`partitions` has the number of partitions of each existing topic.

    Raises:
        NotCopartitioned: a topic is missing, or joined topics differ in their numbers.
    """
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
                " be looked for in the wrong one. Delete the topics and create them with one number"
            )


async def check_copartitions(brokers: Brokers) -> None:
    """Compare what the broker has.

    Raises:
        NotCopartitioned: a topic is missing, or joined topics differ in their numbers.
        KafkaError: the broker is unavailable.
    """
    client = AIOKafkaAdminClient(**brokers.options)
    await client.start()
    try:
        wanted = [topic for topics in JOINED for topic in topics]
        described = await client.describe_topics(wanted)
    finally:
        await client.close()
    require_copartitions(
        {each["topic"]: len(each["partitions"]) for each in described if not each["error_code"]}
    )
