"""Which partition a key goes to: three hashes, and a hot key with a partition of its own."""

import zlib
from collections.abc import Callable, Mapping, Sequence

from aiokafka.partitioner import murmur2

POSITIVE = 0x7FFFFFFF

Hash = Callable[[str], int]


def hash_as_java_text(key: str) -> int:
    """`String.hashCode`, which some write into a partitioner of their own."""
    number = 0
    for character in key:
        number = (31 * number + ord(character)) & 0xFFFFFFFF
    return number & POSITIVE


def hash_as_java_client(key: str) -> int:
    """What Kafka's own client does, aiokafka and Faust too."""
    return int(murmur2(key.encode())) & POSITIVE


def hash_as_c_client(key: str) -> int:
    """What librdkafka does by default, and what is built on it."""
    return zlib.crc32(key.encode())


HASHES: Mapping[str, Hash] = {
    "String.hashCode": hash_as_java_text,
    "murmur2": hash_as_java_client,
    "CRC-32": hash_as_c_client,
}

Partitioner = Callable[[bytes | None, Sequence[int], Sequence[int]], int]
"""As the client wants it: of a key, all partitions, and those that have a leader."""


def choose_partition(hot: str, last: int, key: str, partitions: int) -> int:
    """The last partition for the hot key, the others for all other keys; `last` is 1, as the last
    partition is number n - 1."""
    if partitions == 1:
        return 0
    if key == hot:
        return partitions - last
    return hash_as_java_client(key) % (partitions - 1)


def separate(hot: str) -> Partitioner:
    """A partitioner that gives one key a partition of its own."""

    def choose(key: bytes | None, every: Sequence[int], _: Sequence[int]) -> int:
        if key is None:
            raise ValueError("a record without a key has no place in an order")
        return every[choose_partition(hot, 1, key.decode(), len(every))]

    return choose
