"""Records in the bytes in which they travel to Kafka and lie in its logs: record batch, version 2.

https://kafka.apache.org/documentation/#recordbatch

The outbox holds headers in this form from the beginning. A relay that takes thirteen headers of
every row apart, and puts them together again, spends half of its time on that.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from aiokafka.record.util import calc_crc32c

from shared.messaging.messages import Header, ReadHeader

BATCH_BEGIN = struct.Struct(">qiibI")
"""Base offset, length of what follows it, leader epoch, version, checksum of what follows it."""
BATCH_COVERED = struct.Struct(">hiqqqhii")
"""Attributes, last offset, first and latest timestamp, producer id and epoch, base sequence,
count; then come the records."""
BATCH_BYTES = BATCH_BEGIN.size + BATCH_COVERED.size
LENGTH_BEGINS = 12
"""The base offset and the length itself are not counted in the length."""
VERSION = 2
GIVEN_BY_THE_BROKER = 0
UNKNOWN_EPOCH = -1
NO_BATCH_ATTRIBUTES = 0
"""Not compressed, times are the writer's, no transaction."""
NO_ATTRIBUTES = b"\x00"
"""Of a record: none are defined."""
NO_CONTENT = -1
"""The length of a key, a value, or the value of a header that is not there."""


Target = tuple[str, int]
"""A partition: its topic and its number."""


class OutgoingRecord(NamedTuple):
    """A record with its partition chosen and its headers packed: nothing is computed any more."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: bytes
    """As `pack` makes them."""
    milliseconds: int
    """Its timestamp, since 1970."""

    @property
    def target(self) -> Target:
        return self.topic, self.partition


@lru_cache(1 << 16)
def varint(number: int) -> bytes:
    """An integer of 64 bits in zigzag form: the smaller its amount, the fewer bytes."""
    rest = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def to_headers(headers: Mapping[str, str]) -> list[Header]:
    return [(name, value.encode()) for name, value in headers.items()]


def pack(headers: Sequence[ReadHeader], *, to_follow: int = 0) -> bytes:
    """Headers as they stand in a record; the SQL function `try_append` adds `to_follow` more."""
    packed = [varint(len(headers) + to_follow)]
    for name, value in headers:
        packed += prefixed(name.encode())
        packed += prefixed(value)
    return b"".join(packed)


def prefixed(content: bytes | None) -> tuple[bytes, bytes]:
    """The length and the bytes; -1 stands for none."""
    return (varint(NO_CONTENT), b"") if content is None else (varint(len(content)), content)


def unpack(packed: bytes) -> list[Header]:
    """The inverse of `pack`.

    Raises:
        ValueError: that is not what `pack` makes.
    """
    reader = ByteReader(packed)
    headers = [(reader.content().decode(), reader.content()) for _ in range(reader.number())]
    if reader.rest:
        raise ValueError(f"{len(reader.rest)} bytes follow the last header")
    return headers


class ByteReader:
    """Takes values from the front of some bytes."""

    def __init__(self, content: bytes | memoryview) -> None:
        self.rest = memoryview(content)

    def number(self) -> int:
        encoded = 0
        for place, byte in enumerate(self.rest):
            encoded |= (byte & 0x7F) << 7 * place
            if byte <= 0x7F:
                self.rest = self.rest[place + 1 :]
                return encoded >> 1 ^ -(encoded & 1)
        raise ValueError("a number has no end")

    def nullable(self) -> bytes | None:
        length = self.number()
        return None if length < 0 else self._take(length)

    def content(self) -> bytes:
        return self._take(self.number())

    def _take(self, length: int) -> bytes:
        if not 0 <= length <= len(self.rest):
            raise ValueError(f"{length} bytes are announced and {len(self.rest)} follow")
        content, self.rest = bytes(self.rest[:length]), self.rest[length:]
        return content


class RecordBatch:
    """Records of one partition that travel and are acknowledged together.

    aiokafka sends it like one of its own: from `close` on, the methods are those of its
    BatchBuilder.
    """

    def __init__(self, topic: str, partition: int, bytes_max: int) -> None:
        self.topic = topic
        self.partition = partition
        self.count = 0
        self.base_offset = -1
        """Of its first record, once it is acknowledged."""
        self._bytes_max = bytes_max
        self._bytes = BATCH_BYTES
        self._pieces: list[bytes] = []
        self._first_milliseconds = 0
        self._latest_milliseconds = 0
        self._producer = (-1, -1, -1)
        self._closed = False
        self._built: bytes | None = None

    @property
    def target(self) -> Target:
        return self.topic, self.partition

    def append(self, record: OutgoingRecord) -> bool:
        """False when it would reach `bytes_max`, where aiokafka's own builder stops as well.

        The first record fits always, however large it is.
        """
        _, _, key, value, headers, milliseconds = record
        if not self.count:
            self._first_milliseconds = self._latest_milliseconds = milliseconds
        time = varint(milliseconds - self._first_milliseconds)
        offset = varint(self.count)
        key_length, key = prefixed(key)
        value_length, value = prefixed(value)
        length = len(NO_ATTRIBUTES) + len(time) + len(offset) + len(headers)
        length += len(key_length) + len(key) + len(value_length) + len(value)
        length_itself = varint(length)
        bytes_then = self._bytes + len(length_itself) + length
        if self.count and bytes_then >= self._bytes_max:
            return False
        # Joined once, for the whole batch.
        self._pieces += (
            length_itself,
            NO_ATTRIBUTES,
            time,
            offset,
            key_length,
            key,
            value_length,
            value,
            headers,
        )
        self._bytes = bytes_then
        self.count += 1
        if milliseconds > self._latest_milliseconds:
            self._latest_milliseconds = milliseconds
        return True

    def close(self) -> None:
        self._closed = True

    def closed(self) -> bool:
        return self._closed

    def record_count(self) -> int:
        return self.count

    def size(self) -> int:
        return self._bytes

    def _set_producer_state(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        self._producer = (producer_id, epoch, base_sequence)

    def _build(self) -> bytes:
        """The batch whole; the same bytes again when it is sent again."""
        if self._built is None:
            covered = BATCH_COVERED.pack(
                NO_BATCH_ATTRIBUTES,
                self.count - 1,
                self._first_milliseconds,
                self._latest_milliseconds,
                *self._producer,
                self.count,
            )
            content = b"".join((covered, *self._pieces))
            self._pieces.clear()
            length = self._bytes - LENGTH_BEGINS
            begin = BATCH_BEGIN.pack(
                GIVEN_BY_THE_BROKER, length, UNKNOWN_EPOCH, VERSION, calc_crc32c(content)
            )
            self._built = begin + content
        return self._built
