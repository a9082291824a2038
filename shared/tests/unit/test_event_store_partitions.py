"""Partitions agree with every other Kafka client."""

import pytest

from shared.eventsourcing.event_store import get_partition

# Computed with the default partitioner of the Java client (murmur2) for 4 partitions.
KNOWN = [("21", -973932308), ("foobar", -790332482), ("a-little-bit-long-string", -985981536)]


@pytest.mark.parametrize(("key", "murmur2"), KNOWN)
def test_a_key_has_the_partition_that_java_gives_it(key: str, murmur2: int) -> None:
    assert get_partition("users.v1", key) == (murmur2 & 0x7FFFFFFF) % 4


def test_orders_lie_in_the_partitions_of_their_users() -> None:
    key = "01a1fc26-077a-762c-9f30-f2692e875baa"

    assert get_partition("users.v1", key) == get_partition("orders.v1", key)
