"""Faust tables on RocksDB whose writes can be waited for."""

from collections.abc import Awaitable, Iterator
from typing import Any, Generic, TypeVar

import faust

V = TypeVar("V")

ROCKSDB = {
    "driver": "rocksdict",
    "block_cache_size": 8 << 20,
    "write_buffer_size": 4 << 20,
    "max_write_buffer_number": 2,
    "max_open_files": 64,
}
"""For each partition of each table. Faust's own defaults are a cache of 2 GiB and buffers of
192 MiB."""

RECOVERED_AT_ONCE = 1000
"""Records of a changelog that are written to RocksDB together."""


class Table(Generic[V]):
    """A table of JSON values by text.

    `table[key] = value` of Faust sends the change and tells nobody whether it arrived. Here a
    write is done when its change is acknowledged: before that, the record that led to it must not
    be. Reads and writes go to the partition of the record in hand.
    """

    def __init__(self, app: faust.App, name: str, *, partitions: int) -> None:
        self.faust = app.Table(
            name,
            key_type=str,
            partitions=partitions,
            recovery_buffer_size=RECOVERED_AT_ONCE,
            options=dict(ROCKSDB),
        )

    def get(self, key: str) -> V | None:
        value: V | None = self.faust.data.get(key)
        return value

    def put(self, key: str, value: V) -> Awaitable[object]:
        """Keep a value. It is written here at once, and there when the result is awaited.

        A crash in between leaves it here alone, and its record is read again: what leads to the
        same value again must write it again.
        """
        self.faust.data[key] = value
        changed: Awaitable[object] = self.faust.send_changelog(
            self.faust.partition_for_key(key), key, value
        )
        return changed

    def remove(self, key: str) -> Awaitable[object]:
        """The same, with a tombstone."""
        self.faust.data.pop(key, None)
        changed: Awaitable[object] = self.faust.send_changelog(
            self.faust.partition_for_key(key), key, None, value_serializer="raw"
        )
        return changed

    def items(self) -> Iterator[tuple[str, Any]]:
        """All of the partitions that are ours."""
        yield from self.faust.data.items()
