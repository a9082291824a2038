"""A group has a position in each partition that it reads, as soon as there is such a group."""

from aiokafka import TopicPartition

from observer_svc.groups import Group, list_partitions

FIRST, SECOND = TopicPartition("users.v1", 0), TopicPartition("users.v1", 1)


def test_a_partition_without_a_commit_is_read_from_its_beginning() -> None:
    group = Group(committed={FIRST: 7}, is_alive=False)

    assert group.get_positions([FIRST, SECOND]) == {FIRST: 7, SECOND: 0}


def test_a_group_with_members_has_positions_before_its_first_commit() -> None:
    assert Group(committed={}, is_alive=True).get_positions([FIRST]) == {FIRST: 0}


def test_a_group_that_was_never_started_is_not_behind() -> None:
    assert Group(committed={}, is_alive=False).get_positions([FIRST]) == {}


def test_the_partitions_of_a_reader_are_those_of_its_topics() -> None:
    topics = {each.topic for each in list_partitions("users-worker")}

    assert topics == {"users.v1", "orders.v1"}
    assert {each.topic for each in list_partitions()} >= topics | {"items.v1"}
