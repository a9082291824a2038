"""The broker that all under-replicated partitions miss is named."""

import pytest

from local_stack.under_replicated import find_missing_everywhere, parse, summarize

TOPICS = ("users.v1", "orders.v1")
PARTITIONS_OF_ONE = 7


def describe(topic: str, number: int, replicas: str, in_sync: str) -> str:
    """A line as Kafka 4.3 prints it."""
    return (
        f"\tTopic: {topic}\tPartition: {number}\tLeader: {in_sync[:1] or 'none'}"
        f"\tReplicas: {replicas}\tIsr: {in_sync}\tElr: \tLastKnownElr: "
    )


@pytest.fixture
def printed() -> str:
    """Fourteen partitions, with one of two further replicas each; all miss broker 2."""
    return "\n".join(
        describe(topic, number, f"{1 + number % 2 * 2},2", str(1 + number % 2 * 2))
        for topic in TOPICS
        for number in range(PARTITIONS_OF_ONE)
    )


def test_tv31_of_14_partitions_the_broker_that_is_missing_everywhere_is_named(printed: str) -> None:
    assert len(list(parse(printed))) == 14
    assert find_missing_everywhere(list(parse(printed))) == {2}
    expected = "14 partitions are under-replicated; missing in all of them: broker 2"
    assert summarize(printed) == expected


def test_no_broker_is_named_where_partitions_miss_different_ones(printed: str) -> None:
    other = describe("items.v1", 0, "1,3", "1")

    assert summarize(f"{printed}\n{other}") == (
        "15 partitions are under-replicated; no broker is missing in all of them,"
        " but broker 2, broker 3 in some"
    )


def test_a_partition_without_a_replica_in_sync_misses_all() -> None:
    [partition] = parse(describe("items.v1", 0, "1,3", ""))

    assert partition.missing == {1, 3}


def test_partitions_that_have_all_replicas_are_not_counted() -> None:
    header = "Topic: items.v1\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: "
    whole = describe("items.v1", 0, "1,2", "2,1")

    assert summarize(f"{header}\n{whole}") == "no partition is under-replicated"
