"""Topics that are joined have equally many partitions, or the program does not start."""

import pytest

from analytics_faust.copartitions import JOINED, NotCopartitioned, require_copartitions
from analytics_faust.messages import ITEMS
from shared.eventsourcing.event_store import get_partition
from shared.messaging.topics import INTERNAL_TOPICS, TOPICS, list_new_topics

DECLARED = {topic.name: topic.partitions for topic in TOPICS.values()} | {
    topic.name: topic.partitions for topic in INTERNAL_TOPICS.values()
}


def test_the_declared_topics_fit() -> None:
    require_copartitions(DECLARED)


@pytest.mark.parametrize("topic", [topic for topics in JOINED for topic in topics])
def test_one_with_another_number_is_refused_by_name(topic: str) -> None:
    with pytest.raises(NotCopartitioned, match=rf"{topic} has 3\b.* in the wrong one"):
        require_copartitions(DECLARED | {topic: 3})


@pytest.mark.parametrize("topic", [topic for topics in JOINED for topic in topics])
def test_one_that_is_missing_is_refused_by_name(topic: str) -> None:
    there = {name: partitions for name, partitions in DECLARED.items() if name != topic}

    with pytest.raises(NotCopartitioned, match=f"no topic {topic}: create it with"):
        require_copartitions(there)


def test_every_internal_topic_of_the_program_is_checked() -> None:
    assert {topic for topics in JOINED for topic in topics} >= INTERNAL_TOPICS.keys()


def test_changelogs_are_compacted_and_other_internal_topics_are_not() -> None:
    configs = {topic.name: topic.topic_configs for topic in list_new_topics(1)}

    for name in INTERNAL_TOPICS:
        policy = "compact" if name.endswith("-changelog") else "delete"
        assert configs[name]["cleanup.policy"] == policy
    assert configs[ITEMS]["retention.ms"] == "-1"


@pytest.mark.parametrize(
    ("item", "of_six"), [("iphone", 3), ("ipad", 1), ("iwatch", 1), ("ipod", 5)]
)
def test_tv6_every_writer_sends_a_key_to_the_same_partition(item: str, of_six: int) -> None:
    """Murmur2, like Java, aiokafka and Faust; so a line is sent to the partition of its item."""
    from aiokafka.partitioner import murmur2

    positive = murmur2(item.encode()) & 0x7FFFFFFF

    assert positive % 6 == of_six
    assert get_partition(ITEMS, item) == positive % TOPICS[ITEMS].partitions
