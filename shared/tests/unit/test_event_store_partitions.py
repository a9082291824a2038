"""Partitions agree with every other Kafka client, and with every other writer of a topic."""

import zlib
from collections.abc import Callable
from itertools import combinations

import pytest
from aiokafka.partitioner import DefaultPartitioner, murmur2

from shared.eventsourcing.event_store import get_partition
from shared.messaging.topics import TOPICS

# Computed with the default partitioner of the Java client (murmur2) for 4 partitions.
KNOWN = [("21", -973932308), ("foobar", -790332482), ("a-little-bit-long-string", -985981536)]


@pytest.mark.parametrize(("key", "murmur2"), KNOWN)
def test_a_key_has_the_partition_that_java_gives_it(key: str, murmur2: int) -> None:
    assert get_partition("users.v1", key) == (murmur2 & 0x7FFFFFFF) % 4


def test_orders_lie_in_the_partitions_of_their_users() -> None:
    key = "01a1fc26-077a-762c-9f30-f2692e875baa"

    assert get_partition("users.v1", key) == get_partition("orders.v1", key)


POSITIVE = 0x7FFFFFFF
"""Java has signed integers: clients drop the sign."""


def hash_as_java_strings_do(key: str) -> int:
    """`hashCode`, in 32 bits: what the first example of this pipeline took."""
    code = 0
    for character in key:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return code & POSITIVE


def hash_as_java_clients_do(key: str) -> int:
    """Also aiokafka, and Faust with it."""
    return int(murmur2(key.encode())) & POSITIVE


def hash_as_librdkafka_does(key: str) -> int:
    """Its default, `consistent_random`: CRC-32, which has no sign."""
    return zlib.crc32(key.encode())


USERS, ITEMS = ("Jack", "Lily", "Mike", "Lucy"), ("iphone", "ipad", "iwatch", "ipod")


@pytest.mark.parametrize(
    ("hash_key", "users_of_3", "items_of_6"),
    [
        (hash_as_java_strings_do, (2, 2, 0, 2), (5, 0, 2, 2)),
        (hash_as_java_clients_do, (0, 2, 2, 0), (3, 1, 1, 5)),
        (hash_as_librdkafka_does, (2, 2, 2, 0), (5, 4, 4, 0)),
    ],
)
def test_tv6_three_hashes_send_a_key_to_different_partitions(
    hash_key: Callable[[str], int], users_of_3: tuple[int, ...], items_of_6: tuple[int, ...]
) -> None:
    assert tuple(hash_key(user) % 3 for user in USERS) == users_of_3
    assert tuple(hash_key(item) % 6 for item in ITEMS) == items_of_6


KEYS = [f"key {number}" for number in range(1_000)]


@pytest.mark.parametrize("topic", TOPICS)
def test_tv6_all_writers_of_a_topic_agree(topic: str) -> None:
    """The outbox, which relays follow, and the clients of workers and of Faust."""
    partitions = list(range(TOPICS[topic].partitions))
    choose = DefaultPartitioner()

    written = {key: choose(key.encode(), partitions, partitions) for key in KEYS}

    assert written == {key: get_partition(topic, key) for key in KEYS}
    assert set(written.values()) == set(partitions)


def test_tv6_a_writer_with_the_hash_of_librdkafka_would_not_agree() -> None:
    """The negative control."""
    partitions = TOPICS["users.v1"].partitions

    others = [
        key
        for key in KEYS
        if hash_as_librdkafka_does(key) % partitions != get_partition("users.v1", key)
    ]

    assert len(others) > len(KEYS) / 2


EQUAL = [
    (one, other)
    for one, other in combinations(TOPICS, 2)
    if TOPICS[one].partitions == TOPICS[other].partitions
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_tv33_a_key_has_the_same_partition_in_two_topics_of_equal_count(
    one: str, other: str
) -> None:
    assert [get_partition(one, key) for key in KEYS] == [get_partition(other, key) for key in KEYS]


def test_tv33_with_another_count_most_keys_are_elsewhere() -> None:
    """The negative control: why the topics of a join have one number of partitions."""
    choose, four, six = DefaultPartitioner(), list(range(4)), list(range(6))

    moved = [
        key for key in map(str.encode, KEYS) if choose(key, four, four) != choose(key, six, six)
    ]

    assert len(moved) > len(KEYS) / 2
